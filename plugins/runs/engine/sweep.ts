// Finds every run that is open and that no driver has. Wake-ups are hints and may be lost; the
// sweep guarantees that each run goes on.
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage, Where } from '#ports/storage.ts'
import { Runs, Sessions, sweepReason, type Run } from '../collections.ts'
import type { Driver } from './driver.ts'
import type { Lease } from './lease.ts'
import type { Replies } from './replies.ts'
import type { Admit } from '../admission/admit.ts'
import { rest, withdraw } from '../sessions/session-queue.ts'

/** An admission takes milliseconds. One that is this old has lost its process. */
const admissionMsMax = 10_000

type Deps = {
  store: ScopedStorage
  clock: Clock
  log: Log
  driver: Driver
  admission: Admit
  replies: Replies
  lease: Lease
}

export function createSweep({ store, clock, log, driver, admission, replies, lease }: Deps) {
  const startedAt = clock.now()
  const admissionIsLeft = (run: Run): boolean =>
    (store.exclusive && run.createdAt < startedAt) || lease.stoodStill(run, admissionMsMax)
  const care = async (run: Run): Promise<void> => {
    if (driver.isActive(run.id)) return
    const own = store.tenant(run)
    if (run.phase === 'admitting') {
      if (!admissionIsLeft(run)) return
      const {
        run: placed,
        placed: { status },
      } = await admission.resume(run)
      if (status === 'running') await driver.claim(placed)
      return
    }
    if (run.status === 'queued' || run.status === 'blocked') {
      const gone =
        run.cancelAsked &&
        ((await withdraw(own, run)) ||
          !(await own.get(Sessions, run.sessionId))?.queue.includes(run.id))
      const next = run.cancelAsked ? (gone ? run.id : undefined) : await rest(own, run, clock.now())
      if (next !== undefined) await driver.startNext(run, next)
      return
    }
    await driver.claim(run)
  }
  /** Ends the questions whose deadline has passed. */
  const expire = async (run: Run): Promise<void> => {
    if (run.phase !== 'placed' || run.status !== 'waiting') return
    const expired = await replies.expire(run)
    if (expired) await driver.claim(expired)
  }
  /** Every run that is due by the condition, in pages. */
  async function* dueBy(nextCheckAt: Where[string]): AsyncGenerator<Run> {
    let after: string | undefined
    do {
      const page = await store.system(sweepReason).find(Runs, {
        where: { due: nextCheckAt },
        orderBy: ['due', 'asc'],
        limit: 200,
        ...(after === undefined ? {} : { after }),
      })
      yield* page.items
      after = page.next
    } while (after !== undefined)
  }
  return async function sweep(): Promise<void> {
    const open = new Set<string>()
    const each = async (runs: AsyncIterable<Run>, act: (run: Run) => Promise<void>) => {
      for await (const run of runs) {
        open.add(run.id)
        await act(run).catch((error: unknown) =>
          log('warn', 'sweep', { run: run.id, organisation: run.orgId, error }),
        )
      }
    }
    await each(dueBy(0), care)
    await each(dueBy({ gt: 0, lte: clock.now() }), expire)
    lease.keepOnly(open)
  }
}
