// What lists show of a run.
import type { Static } from 'typebox'
import type { RunSummary } from '#contracts/run-views.ts'
import type { Run } from './collections.ts'

const iso = (at: number) => new Date(at).toISOString()

export const runSummary = (run: Run): Static<typeof RunSummary> => ({
  run_id: run.id,
  session_id: run.sessionId,
  status: run.status,
  app_name: run.request.app_name,
  model: run.model,
  queue_seq: run.queueSeq ?? 0,
  created_at: iso(run.createdAt),
  ended_at: run.endedAt === undefined ? null : iso(run.endedAt),
  credits: run.credits ?? null,
})
