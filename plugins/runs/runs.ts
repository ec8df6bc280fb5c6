// Starts, follows and stops runs, for one caller at a time.
import { terminalTypes } from '#contracts/events.ts'
import type { RunStart, RunStarted } from '#contracts/runs.ts'
import { fault, type Caller, type WireEvent } from '#kernel'
import type { Clock } from '#ports/clock.ts'
import type { LoggedEvent, ScopedEventlog } from '#ports/eventlog.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Runs, Sessions, streamOf, type Run, type Status } from './collections.ts'
import type { Driver } from './drive.ts'
import type { Admit } from './steps/admit.ts'
import { withdraw } from './steps/place.ts'

type Deps = { store: ScopedStorage; eventlog: ScopedEventlog; clock: Clock; admission: Admit; driver: Driver }
const isTerminal = ({ type, hidden }: LoggedEvent) => !hidden && (terminalTypes as readonly string[]).includes(type)

/** What clients may see, ending with the terminal event. */
async function* visible(batches: AsyncIterable<readonly LoggedEvent[]>): AsyncGenerator<readonly WireEvent[]> {
  for await (const batch of batches) {
    const shown = batch.some(({ hidden }) => hidden) ? batch.filter(({ hidden }) => !hidden) : batch
    if (shown.length > 0) yield shown
    if (shown.some(isTerminal)) return
  }
}
async function* nothing(): AsyncGenerator<readonly WireEvent[]> {}

export function createRuns({ store, eventlog, clock, admission, driver }: Deps) {
  const find = async (caller: Caller, runId: string): Promise<Run> => {
    const run = await store.tenant(caller).get(Runs, runId)
    if (!run || run.userId !== caller.userId) throw fault('NOT_FOUND', { what: 'run' })
    return run
  }
  return {
    find,
    async start(caller: Caller, request: RunStart, idempotencyKey: string | undefined): Promise<RunStarted> {
      if (idempotencyKey && request.idempotency_key && idempotencyKey !== request.idempotency_key) throw fault('INVALID_FIELD', { field: 'idempotency_key', why: 'differs from the Idempotency-Key header' })
      const key = request.idempotency_key ?? idempotencyKey
      const { run, placed, resumed, mine } = await admission.admit(caller, key ? { ...request, idempotency_key: key } : request)
      if (mine && placed.status === 'running') driver.begin(run)
      if (mine && placed.status === 'queued') {
        // The run ahead may have ended between the place in the queue and now.
        const session = await store.tenant(caller).get(Sessions, run.sessionId)
        if (session?.active === run.id) await driver.claim(run)
      }
      return { run_id: run.id, session_id: run.sessionId, cursor: 0, resumed, status: placed.status, queue_seq: placed.queueSeq }
    },

    /** Everything after the cursor, then what comes, to the end of the run. CURSOR_INVALID beyond the log; `gone` first when retention has passed the cursor. */
    async follow(caller: Caller, runId: string, after: number, signal: AbortSignal): Promise<AsyncIterable<readonly WireEvent[]>> {
      const run = await find(caller, runId), log = eventlog.tenant(caller), stream = streamOf(run.id)
      if (after === 0) return visible(log.follow(stream, { after, signal }))
      const { first, last } = await log.bounds(stream)
      if (after > last) throw fault('CURSOR_INVALID', { field: 'Last-Event-ID', why: `is beyond the last event (${last})` })
      if (after === last) {
        const [newest] = await log.read(stream, { after: last - 1, limit: 1 })
        if (newest && isTerminal(newest)) return nothing()
      }
      const rest = visible(log.follow(stream, { after, signal }))
      if (after >= first - 1) return rest
      return (async function* () {
        yield [{ seq: first - 1, type: 'gone', data: { first } }]
        yield* rest
      })()
    },

    /** Stops the work. Asking twice, or after the end, changes nothing. */
    async cancel(caller: Caller, runId: string): Promise<{ run_id: string; status: Status; cancelling: boolean }> {
      const run = await find(caller, runId), own = store.tenant(caller)
      const asked = await own.update(Runs, run.id, { set: { cancelAsked: true } }, { if: { phase: { in: ['admitting', 'placed'] } } })
      if (!asked) return { run_id: run.id, status: (await find(caller, runId)).status, cancelling: false }
      if (driver.isActive(run.id)) driver.stop(run.id, 'cancelled')
      else if (asked.phase === 'placed' && (asked.status === 'queued' || asked.status === 'blocked') && (await withdraw(own, asked))) await driver.claim(asked)
      return { run_id: run.id, status: asked.status, cancelling: true }
    },

    async resumeQueue(caller: Caller, sessionId: string, unpause: (now: number) => Promise<string | undefined>): Promise<void> {
      const next = await unpause(clock.now())
      if (next) await driver.startNext({ orgId: caller.orgId, sessionId } as Run, next)
    },
  }
}
export type RunService = ReturnType<typeof createRuns>
