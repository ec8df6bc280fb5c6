// What becomes of a run after its end: its log is made small, then forgotten but for the end, and its idempotency key is freed. The conversation keeps the message and the answer.
import { Counter } from 'prom-client'
import { hasCode, type Introspection } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Eventlog, ScopedEventlog } from '#ports/eventlog.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Runs, streamOf, type Run } from './collections.ts'
import { compact } from './compact.ts'
import type { RunsConfig } from './config.ts'

export const retentionReason = 'retention: runs that ended long ago, of every organisation'
/** Whoever began with a run and died is followed by somebody else after so many milliseconds. */
const claimMs = 600_000
/** Events at the end of a log among which the decision of the end is looked for. */
const tailEvents = 200
const endTypes = ['ending@1', 'usage', 'done', 'error']

type Deps = { store: ScopedStorage; eventlog: ScopedEventlog; clock: Clock; config: RunsConfig; log: Log; host: Introspection; signal: AbortSignal }

/** What each stage waits for, in milliseconds since the epoch; Infinity for never. An idempotency key lives at least as long as the events that it answers with. */
export function stagesOf({ endedAt = 0 }: Pick<Run, 'endedAt'>, { compact_after_ms: small, events_kept_ms: events, keys_kept_ms: keys }: Pick<RunsConfig, 'compact_after_ms' | 'events_kept_ms' | 'keys_kept_ms'>) {
  const after = (ms: number) => (ms === 0 ? Infinity : endedAt + ms)
  return { compact: endedAt + small, trim: after(events), free: Math.max(after(events), after(keys)) }
}

/** Forgets all but the end: a reader learns how the run ended, and that the rest is gone. Answers how many seqs went. */
async function trimToEnd(log: Eventlog, stream: string): Promise<number> {
  const { first, last } = await log.bounds(stream)
  const end = (await log.read(stream, { after: Math.max(0, last - tailEvents), limit: tailEvents })).find(({ type }) => endTypes.includes(type))
  if (!end || end.seq <= first) return 0
  await log.trim(stream, end.seq - 1)
  return end.seq - first
}

export function createRetention({ store, eventlog, clock, config, log, host, signal }: Deps) {
  const count = (name: string, help: string) => new Counter({ name, help, registers: [host.metrics] })
  const compacted = count('runs_compacted_total', 'Ended runs whose logs were compacted.'), bytesBefore = count('runs_compacted_bytes_before_total', 'Bytes of events in these logs before.'), bytesAfter = count('runs_compacted_bytes_after_total', 'Bytes of events in these logs after.')
  const trimmed = count('runs_trimmed_events_total', 'Events of ended runs that retention forgot.')

  const care = async (run: Run): Promise<void> => {
    const now = clock.now(), own = store.tenant(run), events = eventlog.tenant(run), stream = streamOf(run.id), stages = stagesOf(run, config)
    // Claimed first: other processes pass by meanwhile.
    if (!(await own.update(Runs, run.id, { set: { tidy: now + claimMs } }, { if: { phase: 'closed', tidy: run.tidy! } }))) return
    if (stages.trim <= now) trimmed.inc(await trimToEnd(events, stream))
    else if (!run.compacted) {
      const { bytes, keptBytes } = await compact(events, stream)
      compacted.inc()
      bytesBefore.inc(bytes)
      bytesAfter.inc(keptBytes)
    }
    const next = Math.min(...[stages.trim, run.idempotencyKey === undefined ? Infinity : stages.free].filter(at => at > now))
    const frees = stages.free <= now ? ['idempotencyKey'] : [], rests = Number.isFinite(next) ? [] : ['tidy']
    await own.update(Runs, run.id, { set: { compacted: true, ...(Number.isFinite(next) ? { tidy: next } : {}) }, unset: [...frees, ...rests] })
  }

  /** Cares for every run that is due, in pages; a run that cannot be cared for now comes again. */
  return async function retain(): Promise<void> {
    for (let after: string | undefined; ;) {
      const page = await store.system(retentionReason).find(Runs, { where: { tidy: { lte: clock.now() } }, limit: 100, ...(after === undefined ? {} : { after }) })
      for (const run of page.items) {
        if (signal.aborted) return
        // The conversation may be removed meanwhile, and its logs with it.
        await care(run).catch((error: unknown) => hasCode(error, 'STREAM_MOVED') || log('warn', 'runs.retention', { run: run.id, error }))
      }
      if (page.next === undefined) return
      after = page.next
    }
  }
}
export type Retain = ReturnType<typeof createRetention>
