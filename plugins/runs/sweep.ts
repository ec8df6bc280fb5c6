// Finds every run that is not closed and that nobody drives. The wake-ups are hints; this is the promise.
import type { Introspection } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage, Where } from '#ports/storage.ts'
import { Runs, Sessions, type Reply, type Run } from './collections.ts'
import type { RunsConfig } from './config.ts'
import type { Driver } from './drive.ts'
import type { Admit } from './steps/admit.ts'
import { rest, withdraw } from './steps/turns.ts'

export const sweepReason = 'sweep: runs that nobody drives, of every organisation'
/** An admission takes milliseconds; one that is this old lost its process. */
const admissionMsMax = 10_000

type Deps = { store: ScopedStorage; clock: Clock; log: Log; driver: Driver; admission: Admit; host: Introspection; config: RunsConfig }

export function createSweep({ store, clock, log, driver, admission, host, config }: Deps) {
  const startedAt = clock.now()
  // A lease is dead when its beat stood still for `lease_ms` on this process's own clock: no two clocks are compared.
  const beats = new Map<string, { epoch: number; beat: number; since: number }>()

  const stoodStill = (run: Run, ms: number): boolean => {
    const seen = beats.get(run.id), now = clock.monotonic()
    if (seen?.epoch === run.epoch && seen.beat === run.beat) return now - seen.since > ms
    beats.set(run.id, { epoch: run.epoch, beat: run.beat, since: now })
    return false
  }
  /** Nobody drives it, or somebody who is dead: at once where no other process can be, else when its beat stood still. */
  const isLeft = (run: Run): boolean => run.owner === undefined || (store.exclusive && !run.owner.startsWith(host.processId)) || stoodStill(run, config.lease_ms)
  const admissionIsLeft = (run: Run): boolean => (store.exclusive && run.createdAt < startedAt) || stoodStill(run, admissionMsMax)
  const care = async (run: Run): Promise<void> => {
    if (driver.isActive(run.id)) return
    const own = store.tenant(run)
    if (run.phase === 'admitting') {
      if (!admissionIsLeft(run)) return
      const { run: placed, placed: { status } } = await admission.resume(run)
      if (status === 'running') await driver.claim(placed)
      return
    }
    if (run.status === 'queued' || run.status === 'blocked') {
      const gone = run.cancelAsked && ((await withdraw(own, run)) || !(await own.get(Sessions, run.sessionId))?.queue.includes(run.id))
      const next = run.cancelAsked ? (gone ? run.id : undefined) : await rest(own, run, clock.now())
      if (next !== undefined) await driver.startNext(run, next)
      return
    }
    if (isLeft(run)) await driver.claim(run)
  }
  /** The question's time is over: the same claim on it as an answer's. */
  const expire = async (run: Run): Promise<void> => {
    const reply: Reply = { number: run.replies, status: 'expired', answer: null }
    const expired = await store.tenant(run).update(Runs, run.id, { set: { reply, due: 0 }, inc: { replies: 1 } }, { if: { phase: 'placed', status: 'waiting', replies: run.replies } })
    if (expired) await driver.claim(expired)
  }
  /** Every run that is due by the condition, in pages. */
  async function* dueBy(due: Where[string]): AsyncGenerator<Run> {
    let after: string | undefined
    do {
      const page = await store.system(sweepReason).find(Runs, { where: { due }, orderBy: ['due', 'asc'], limit: 200, ...(after === undefined ? {} : { after }) })
      yield* page.items
      after = page.next
    } while (after !== undefined)
  }
  return async function sweep(): Promise<void> {
    const open = new Set<string>()
    const each = async (runs: AsyncIterable<Run>, act: (run: Run) => Promise<void>) => {
      for await (const run of runs) {
        open.add(run.id)
        await act(run).catch((error: unknown) => log('warn', 'sweep', { run: run.id, organisation: run.orgId, error }))
      }
    }
    await each(dueBy(0), care)
    await each(dueBy({ gt: 0, lte: clock.now() }), expire)
    for (const id of beats.keys()) if (!open.has(id)) beats.delete(id)
  }
}
