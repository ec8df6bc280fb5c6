// Drives runs: takes a slot and the lease, folds the journal, lets the loop go on from there, then
// settles or parks. Releases a run when told to.
import { fault, hasCode } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { Ledger } from '#ports/billing.ts'
import type { Clock } from '#ports/clock.ts'
import type { ScopedEventlog } from '#ports/eventlog.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Runs, streamOf, type Run } from '../collections.ts'
import type { RunsConfig } from '../config.ts'
import { alreadyEnded } from '../journal/outcome.ts'
import type { RunMetrics } from '../telemetry/metrics.ts'
import type { Transcripts } from '../sessions/transcripts.ts'
import { createJournal, readState, type Journal } from '../journal/journal.ts'
import type { Lease } from './lease.ts'
import type { Loop } from './loop.ts'
import type { Slots, Waiting } from '../admission/slots.ts'
import { leaseTaken } from '../journal/records.ts'
import { answeredIn, emptyState, type Asked } from '../journal/state.ts'
import { settle } from '../steps/settle.ts'
import { createCancellation, type Cancellation, type StopReason } from '../steps/cancellation.ts'
import type { Texts } from '../journal/texts.ts'
import type { createRunSpans, RunSpans } from '../telemetry/spans.ts'

type Active = {
  readonly run: Run
  readonly cancellation: Cancellation
  readonly spans: RunSpans
  readonly since: number
  /** The former driver died or hung. */
  readonly died: boolean
  /** The storage's epoch before the lease was taken. */
  readonly before: number
}
export type DriverDeps = {
  store: ScopedStorage
  eventlog: ScopedEventlog
  billing: Ledger
  clock: Clock
  log: Log
  owner: string
  config: RunsConfig
  loop: Loop
  lease: Lease
  slots: Slots
  texts: Texts
  traced: ReturnType<typeof createRunSpans>
  metrics: RunMetrics
  transcripts: Pick<Transcripts, 'note'>
}

/** How long a tool's body may go on after a hand-over was requested, in milliseconds. */
const handoverMs = 3000
/** A model that reasons may be silent this many times as long. */
const reasoningPatience = 3

export function createDriver({
  store,
  eventlog,
  billing,
  clock,
  log,
  owner,
  config,
  loop,
  lease,
  slots,
  texts,
  traced,
  metrics,
  transcripts,
}: DriverDeps) {
  const active = new Map<string, Active>()
  let closing = false
  let idle: (() => void) | undefined

  /** Releases a run that waits for its user. False: an answer came that the journal lacks. */
  const park = async (run: Run, open: readonly Asked[], answered: number): Promise<boolean> => {
    const nextCheckAt = Math.min(...open.map(({ data }) => Date.parse(String(data['expires_at']))))
    const unheard = {
      phase: 'placed',
      epoch: run.epoch,
      replies: answered,
      cancelAsked: { exists: false },
    } as const
    return Boolean(
      await store
        .tenant(run)
        .update(
          Runs,
          run.id,
          { set: { status: 'waiting', due: nextCheckAt }, unset: ['owner'] },
          { if: unheard },
        ),
    )
  }

  /** Frees the lease, so that another process goes on at once. */
  const release = (run: Run) =>
    store
      .tenant(run)
      .update(Runs, run.id, { unset: ['owner'] }, { if: { epoch: run.epoch, owner } })

  const goOn = async ({ run, cancellation, spans }: Active, journal: Journal): Promise<void> => {
    const own = store.tenant(run)
    let seen: Run | undefined = run
    while (seen) {
      const ended = alreadyEnded(journal.state)
      const left = ended ? { ending: ended } : await loop(seen, journal, cancellation, spans)
      if (!left) return void (cancellation.stopped() === 'handover' && (await release(run)))
      if ('ending' in left)
        return settle(
          {
            own,
            billing,
            clock,
            journal,
            metrics,
            texts,
            note: transcripts.note,
            run: seen,
            wake: id => startNext(run, id),
            compactAfterMs: config.compact_after_ms,
          },
          left.ending,
        )
      await journal.settled()
      if (await park(run, left.waits, answeredIn(journal.state))) return
      seen = await own.get(Runs, run.id)
      if (seen?.epoch !== run.epoch) return
    }
  }

  const drive = async (entry: Active, fresh: boolean): Promise<void> => {
    const { run, before, died } = entry
    const events = eventlog.tenant(run)
    const stream = streamOf(run.id)
    const state = fresh ? emptyState() : await readState(events, stream)
    if (state.epoch > run.epoch) return
    // If a full disk lost the lease, this driver has none, and the next driver gets the same epoch.
    if (store.epoch() !== before) throw fault('STORAGE_FULL')
    const journal = createJournal(events, stream, state, {
      bytesMax: eventlog.limits.appendBytesMax,
      appended: metrics.appends(run, state.head === 0),
    })
    if (!state.terminal) journal.write(leaseTaken(run.epoch, owner, died))
    if (!fresh) {
      // Whatever ended the former driver may end this one at once. Its start must be on disk first,
      // so that deaths are counted.
      await journal.settled()
      await eventlog.durable()
    }
    await goOn(entry, journal)
  }

  const start = (run: Run, fresh: boolean, died = false, before = store.epoch()) => {
    const entry: Active = {
      run,
      cancellation: createCancellation(clock),
      spans: traced(run),
      since: clock.monotonic(),
      died,
      before,
    }
    active.set(run.id, entry)
    lease.taken(run.id)
    entry.spans
      .driving(() => drive(entry, fresh))
      .catch((error: unknown) => {
        // Another driver has the run, or nothing can be written now. The sweep continues it later.
        if (!hasCode(error, 'STREAM_MOVED'))
          log('warn', 'run.left', { run: run.id, organisation: run.orgId, error })
      })
      .finally(() => {
        active.delete(run.id)
        lease.dropped(run.id)
        slots.release(run.id, clock.monotonic() - entry.since)
        if (closing) return void (active.size === 0 && idle?.())
        callNext()
      })
  }
  /** Starts waiting runs for as long as there are slots. */
  const callNext = (): void => {
    for (let next = slots.reserveNext(); next && !closing; next = slots.reserveNext())
      startWaiting(next)
  }
  const startWaiting = (next: Waiting) =>
    void startNext(next, next.id)
      .catch((error: unknown) =>
        log('warn', 'run.claim', { run: next.id, organisation: next.orgId, error }),
      )
      .finally(() => slots.cancelReservation(next.id) && callNext())
  const leave = (id: string) => {
    slots.release(id)
    callNext()
  }

  /**
   * Takes a slot and the lease, if the lease is free, and drives. False: the run must wait, or
   * another process has it.
   */
  const claim = async (seen: Run): Promise<boolean> => {
    if (closing || active.has(seen.id) || !lease.isFree(seen) || !slots.acquire(seen)) return false
    const before = store.epoch()
    const taken = await store
      .tenant(seen)
      .update(
        Runs,
        seen.id,
        { set: { owner, status: 'running', due: 0 }, inc: { epoch: 1, beat: 1 } },
        { if: { phase: 'placed', epoch: seen.epoch, beat: seen.beat } },
      )
      .catch((error: unknown) => {
        leave(seen.id)
        throw error
      })
    const died = seen.owner !== undefined && seen.owner !== owner
    if (taken && died) metrics.takenOver()
    if (taken && !closing) {
      start(taken, false, died, before)
      return true
    }
    leave(seen.id)
    if (taken) await release(taken)
    return false
  }

  const startNext = async (scope: { readonly orgId: string }, nextId: string): Promise<void> => {
    if (active.has(nextId)) return
    const next = await store.tenant(scope).get(Runs, nextId)
    if (next?.phase === 'placed') await claim(next)
  }

  return {
    claim,
    startNext,
    isActive: (runId: string) => active.has(runId),
    /** Drives a run that this process has just placed with its lease. The journal is empty. */
    begin(placed: Run) {
      if (!closing && slots.acquire(placed)) start(placed, true)
    },
    stop: (runId: string, reason: StopReason) => active.get(runId)?.cancellation.stop(reason),
    /** Increments the beat of each lease. Finds out which runs are lost, cancelled or silent. */
    async heartbeat(): Promise<void> {
      await Promise.all(
        [...active.values()].map(async ({ run, cancellation }) => {
          const patience = config.stall_ms * (run.request.reasoning ? reasoningPatience : 1)
          cancellation.expireIdle(patience, () =>
            fault('MODEL_FAILED', { why: `it sent nothing for ${patience} ms` }),
          )
          const kept = await store
            .tenant(run)
            .update(Runs, run.id, { inc: { beat: 1 } }, { if: { epoch: run.epoch, owner } })
            .catch(() => run)
          if (!kept) cancellation.stop('lost')
          else if (kept.cancelAsked) cancellation.stop('cancelled')
        }),
      )
    },
    /** Releases every lease, so that another process goes on at once. */
    async close(): Promise<void> {
      closing = true
      for (const { cancellation } of active.values()) cancellation.stop('handover')
      // Runs that wait for a slot may hold a lease of this process, too.
      await Promise.all(
        slots.line().map(({ id, orgId }) =>
          store
            .tenant({ orgId })
            .update(Runs, id, { unset: ['owner'] }, { if: { owner } })
            .catch((error: unknown) =>
              log('warn', 'run.left', { run: id, organisation: orgId, error }),
            ),
        ),
      )
      if (active.size === 0) return
      const over = new AbortController()
      void clock.sleep(handoverMs, over.signal).then(
        () => active.forEach(({ cancellation }) => cancellation.abandon()),
        () => undefined,
      )
      await new Promise<void>(done => {
        idle = done
      })
      over.abort()
    },
  }
}
export type Driver = ReturnType<typeof createDriver>
