// What happens to a run after its end. Its log is compacted, later removed up to its end, and its
// idempotency key is freed. The conversation keeps the message and the answer.
import { hasCode } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { ScopedEventlog } from '#ports/eventlog.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Runs, streamOf, type Run } from '../collections.ts'
import { compact } from '../journal/compact.ts'
import type { RunsConfig } from '../config.ts'
import type { EventQuota, Freed } from './event-quota.ts'
import type { RunMetrics } from '../telemetry/metrics.ts'

export const retentionReason = 'retention: runs that ended long ago, of every organisation'
/**
 * A claim on a run lasts so many milliseconds. If its process dies, another takes the run after
 * that.
 */
const claimMs = 600_000

type Deps = {
  store: ScopedStorage
  eventlog: ScopedEventlog
  clock: Clock
  config: RunsConfig
  log: Log
  eventQuota: EventQuota
  metrics: RunMetrics
  signal: AbortSignal
}

/**
 * When each stage is due, in milliseconds since the epoch; Infinity for never. An idempotency key
 * lives at least as long as the events that it answers with.
 */
export function stagesOf(
  { endedAt = 0 }: Pick<Run, 'endedAt'>,
  {
    compact_after_ms: small,
    events_kept_ms: events,
    keys_kept_ms: keys,
  }: Pick<RunsConfig, 'compact_after_ms' | 'events_kept_ms' | 'keys_kept_ms'>,
) {
  const after = (ms: number) => (ms === 0 ? Infinity : endedAt + ms)
  return {
    compact: endedAt + small,
    trim: after(events),
    free: Math.max(after(events), after(keys)),
  }
}

export function createRetention({
  store,
  eventlog,
  clock,
  config,
  log,
  eventQuota,
  metrics,
  signal,
}: Deps) {
  let freed = { runs: 0, events: 0, bytes: 0 }
  const note = (events: number, bytes: number) => {
    freed = { runs: freed.runs + 1, events: freed.events + events, bytes: freed.bytes + bytes }
  }
  const noteTrimmed =
    (reason: 'age' | 'size') =>
    ({ events, bytes }: Freed) => {
      metrics.trimmed(reason, events, bytes)
      if (events > 0) note(events, bytes)
    }

  const care = async (run: Run): Promise<void> => {
    const now = clock.now()
    const own = store.tenant(run)
    const events = eventlog.tenant(run)
    const stream = streamOf(run.id)
    const stages = stagesOf(run, config)
    // The claim comes first, so that other processes skip this run.
    if (
      !(await own.update(
        Runs,
        run.id,
        { set: { tidy: now + claimMs } },
        { if: { phase: 'closed', tidy: run.tidy! } },
      ))
    )
      return
    let kept: Pick<Run, 'keptBytes' | 'keptSince'> = {}
    if (stages.trim <= now) {
      const gone = await eventQuota.forget(run)
      if (gone) noteTrimmed('age')(gone)
    } else if (!run.compacted) {
      const counts = await compact(events, stream)
      metrics.compacted(counts.bytes, counts.keptBytes)
      note(counts.events - counts.kept, counts.bytes - counts.keptBytes)
      kept = { keptBytes: counts.keptBytes, keptSince: run.endedAt ?? now }
      // The count grows before the run records its bytes. A crash in between leaves the count too
      // high, never too low. A count above the bound is counted anew before anything is removed.
      await eventQuota.count(run, counts.keptBytes)
    }
    const next = Math.min(
      ...[stages.trim, run.idempotencyKey === undefined ? Infinity : stages.free].filter(
        at => at > now,
      ),
    )
    const frees = stages.free <= now ? ['idempotencyKey'] : []
    const rests = Number.isFinite(next) ? [] : ['tidy']
    await own.update(Runs, run.id, {
      set: { compacted: true, ...kept, ...(Number.isFinite(next) ? { tidy: next } : {}) },
      unset: [...frees, ...rests],
    })
  }

  const careForAll = async (): Promise<void> => {
    for (let after: string | undefined; ; ) {
      // Ordered by the field of the condition. In any other order the embedded storage would read
      // every run.
      const page = await store.system(retentionReason).find(Runs, {
        where: { tidy: { lte: clock.now() } },
        orderBy: ['tidy', 'asc'],
        limit: 100,
        ...(after === undefined ? {} : { after }),
      })
      for (const run of page.items) {
        if (signal.aborted) return
        // The conversation may be removed meanwhile, together with its runs' logs.
        await care(run).catch(
          (error: unknown) =>
            hasCode(error, 'STREAM_MOVED') ||
            log('warn', 'retention', { run: run.id, organisation: run.orgId, error }),
        )
      }
      if (page.next === undefined) return
      after = page.next
    }
  }
  /**
   * Cares for every run that is due, in pages, then for every organisation that keeps too much. A
   * failure is tried again at the next pass.
   */
  return async function retain(): Promise<void> {
    freed = { runs: 0, events: 0, bytes: 0 }
    await careForAll()
    await eventQuota.relieveAll(noteTrimmed('size'))
    if (freed.runs > 0) log('info', 'retention.freed', freed)
  }
}
export type Retain = ReturnType<typeof createRetention>
