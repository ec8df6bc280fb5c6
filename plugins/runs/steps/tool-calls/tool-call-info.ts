// What a tool is told of its call, and the key of the call.
import { createHash } from 'node:crypto'
import type { ToolCallInfo } from '../../api.ts'
import type { Run } from '../../collections.ts'
import type { Step } from '../../journal/state.ts'

/**
 * The key of a call: the same for every try of it, and for no other call. It is a UUID (version 8,
 * RFC 9562 section 5.8) of the call's place in its run.
 */
export function keyOf(runId: string, step: number, callId: string): string {
  const hex = createHash('sha256')
    .update(JSON.stringify([runId, step, callId]))
    .digest('hex')
  const start = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}`
  return `${start}-9${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** A tool also gets the signal of each try. */
export type Info = Omit<ToolCallInfo, 'signal'>
export const infoOf = (run: Run, step: Step, callId: string): Info => ({
  orgId: run.orgId,
  userId: run.userId,
  runId: run.id,
  sessionId: run.sessionId,
  key: keyOf(run.id, step.index, callId),
  timeZone: run.request.client_tz,
})
