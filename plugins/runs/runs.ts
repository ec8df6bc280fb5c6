// Starts, follows and stops runs, for one caller at a time.
import type { RunStart, RunStarted } from '#contracts/runs.ts'
import {
  fault,
  type Caller,
  type Json,
  type Broadcasting,
  type WireEvent,
  type WireEvents,
} from '#kernel'
import type { Clock } from '#ports/clock.ts'
import type { Eventlog, LoggedEvent, ScopedEventlog } from '#ports/eventlog.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Runs, streamOf, type Run, type Status } from './collections.ts'
import type { Driver } from './engine/driver.ts'
import { shown } from './journal/compact.ts'
import { isTerminal, type SeenEnded } from './journal/outcome.ts'
import type { RunMetrics } from './telemetry/metrics.ts'
import { cancelledTopic } from './engine/remote-driver.ts'
import type { Replies } from './engine/replies.ts'
import type { Admit } from './admission/admit.ts'
import { rest, unpause, withdraw } from './sessions/session-queue.ts'
import { copiedEvents, type ReadTexts } from './sessions/copies.ts'
import type { Standings } from './views/standing.ts'

type Deps = {
  store: ScopedStorage
  eventlog: ScopedEventlog
  clock: Clock
  admission: Admit
  driver: Driver
  peers: Broadcasting
  metrics: RunMetrics
  replies: Replies
  ended: SeenEnded
  readTexts: ReadTexts
  standings: Standings
}
type Respond = { readonly question_id?: string | undefined; readonly answer: unknown }

/**
 * Yields the events that clients may see, up to the terminal event. `first` was read before, and is
 * yielded at once.
 */
async function* visible(
  first: readonly WireEvent[],
  after: number,
  batches: AsyncIterable<readonly LoggedEvent[]>,
  follow: () => ReturnType<RunMetrics['follow']>,
): AsyncGenerator<readonly WireEvent[]> {
  const { delivered, stop } = follow()
  try {
    if (first.length > 0) yield first
    let at = after
    for await (const batch of batches) {
      const events = shown(batch, at)
      at = batch.at(-1)!.seq
      delivered(at)
      if (events.length > 0) yield events
      if (batch.some(isTerminal)) return
    }
  } finally {
    stop()
  }
}
/** Events that a reader gets at once. Further events come by following the stream. */
const pageEvents = 1000
/** Runs whose user is cached, about 150 bytes each. */
const ownersMax = 10_000

/** Returns the first seq that is still kept, where retention removed events after the cursor. */
async function missed(log: Eventlog, stream: string, after: number): Promise<number | undefined> {
  const { first, last } = await log.bounds(stream)
  if (after > last)
    throw fault('CURSOR_INVALID', {
      field: 'Last-Event-ID',
      why: `is beyond the last event (${last})`,
    })
  return after < first - 1 ? first : undefined
}

export function createRuns({
  store,
  eventlog,
  clock,
  admission,
  driver,
  peers,
  metrics,
  replies,
  ended,
  readTexts,
  standings,
}: Deps) {
  const { find, present } = standings
  // The user of a run never changes. It is cached for readers that come right after the start, or
  // that reconnect with a cursor.
  const owners = new Map<string, string>()
  const remember = ({ orgId, id, userId }: Run) => {
    owners.set(`${orgId}/${id}`, userId)
    if (owners.size > ownersMax) owners.delete(owners.keys().next().value!)
  }
  /**
   * Reads a page of the run's stream, if the caller may read it. A run's records are removed before
   * the run is: while there are records, the run exists.
   */
  const readable = async (
    caller: Caller,
    runId: string,
    after: number,
  ): Promise<{ page: LoggedEvent[]; copy?: Run }> => {
    const reading = eventlog.tenant(caller).read(streamOf(runId), { after, limit: pageEvents })
    if (owners.get(`${caller.orgId}/${runId}`) === caller.userId) {
      const page = await reading
      if (page.length > 0) return { page }
    }
    const [run, page] = await Promise.all([find(caller, runId), reading])
    remember(run)
    return run.copied ? { page, copy: run } : { page }
  }
  const wake = async (caller: Caller, runId: string | undefined) => {
    if (runId !== undefined) await driver.startNext(caller, runId)
  }
  return {
    async start(
      caller: Caller,
      request: RunStart,
      idempotencyKey: string | undefined,
      trace?: string,
    ): Promise<RunStarted> {
      if (idempotencyKey && request.idempotency_key && idempotencyKey !== request.idempotency_key)
        throw fault('INVALID_FIELD', {
          field: 'idempotency_key',
          why: 'differs from the Idempotency-Key header',
        })
      const key = request.idempotency_key ?? idempotencyKey
      const { run, placed, resumed, mine } = await admission.admit(
        caller,
        key ? { ...request, idempotency_key: key } : request,
        trace,
      )
      remember(run)
      if (mine) metrics.started()
      if (mine && placed.status === 'running') driver.begin(run)
      // The run ahead may have ended since this run took its place in the queue.
      else if (mine) await wake(caller, await rest(store.tenant(caller), run, clock.now()))
      const { status, queueSeq } =
        resumed && !mine ? await present(await ended(run, 'summary')) : placed
      return {
        run_id: run.id,
        session_id: run.sessionId,
        cursor: 0,
        resumed,
        status,
        queue_seq: queueSeq,
      }
    },

    /**
     * Yields everything after the cursor, then new events, to the end of the run. CURSOR_INVALID:
     * the cursor is beyond the log. `gone` comes first when retention has passed the cursor.
     */
    async follow(
      caller: Caller,
      runId: string,
      after: number,
      signal: AbortSignal,
    ): Promise<WireEvents> {
      const log = eventlog.tenant(caller)
      const stream = streamOf(runId)
      // The event at the cursor is read too. Its presence proves that the cursor is valid. If it is
      // terminal, nothing follows it.
      const epoch = eventlog.epoch()
      const { page, copy } = await readable(caller, runId, Math.max(0, after - 1))
      if (copy)
        return copiedEvents((await readTexts(caller, [copy]))[0]!).filter(({ seq }) => seq > after)
      const gone =
        page[0]?.seq === Math.max(1, after) ? undefined : await missed(log, stream, after)
      const fresh = page.filter(({ seq }) => seq > after)
      // Events may have been read before they were on disk. They must not leave before they are.
      await eventlog.durable()
      if (eventlog.epoch() !== epoch) throw fault('STORAGE_FULL')
      const first = [
        ...(gone === undefined ? [] : [{ seq: gone - 1, type: 'gone', data: { first: gone } }]),
        ...shown(fresh, after),
      ]
      const at = page.at(-1)?.seq ?? after
      return page.some(isTerminal)
        ? first
        : visible(first, at, log.follow(stream, { after: at, signal }), () => metrics.follow(runId))
    },

    /** Stops the work. Asking twice, or after the end, changes nothing. */
    async cancel(
      caller: Caller,
      runId: string,
    ): Promise<{ run_id: string; status: Status; cancelling: boolean }> {
      const run = await find(caller, runId)
      const own = store.tenant(caller)
      const asked = await own.update(
        Runs,
        run.id,
        { set: { cancelAsked: true, due: 0 } },
        { if: { phase: { in: ['admitting', 'placed'] } } },
      )
      if (!asked)
        return { run_id: run.id, status: (await find(caller, runId)).status, cancelling: false }
      if (driver.isActive(run.id)) driver.stop(run.id, 'cancelled')
      else if (asked.phase === 'placed' && asked.status === 'running')
        peers.publish(cancelledTopic, { runId: run.id })
      else if (
        asked.phase === 'placed' &&
        (asked.status === 'waiting' ||
          ((asked.status === 'queued' || asked.status === 'blocked') &&
            (await withdraw(own, asked))))
      )
        await driver.claim(asked)
      return { run_id: run.id, status: asked.status, cancelling: true }
    },

    /**
     * Answers an open question of the run, once. Without an id the answer is for the only open
     * question. A run that waited goes on at once, or later where no driver is free.
     * A driver that is at work takes the answer after its current action.
     */
    async respond(
      caller: Caller,
      runId: string,
      { question_id: asked, answer }: Respond,
    ): Promise<{ run_id: string; question_id: string; status: Status }> {
      const { run, questionId } = await replies.answer(
        await find(caller, runId),
        asked,
        answer as Json,
      )
      await driver.claim(run)
      return { run_id: run.id, question_id: questionId, status: 'running' }
    },

    async resumeQueue(caller: Caller, sessionId: string): Promise<void> {
      await wake(caller, await unpause(store.tenant(caller), sessionId, clock.now()))
    },
  }
}
export type RunService = ReturnType<typeof createRuns>
