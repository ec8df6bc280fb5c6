// Finds every run that is not closed and that nobody drives. The wake-ups are hints; this is the promise.
import type { Introspection } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Runs, Sessions, type Run } from './collections.ts'
import type { RunsConfig } from './config.ts'
import type { Driver } from './drive.ts'
import type { Admit } from './steps/admit.ts'
import { withdraw } from './steps/place.ts'

export const sweepReason = 'sweep: runs that nobody drives, of every organisation'
/** An admission takes milliseconds; one that is this old lost its process. */
const admissionMsMax = 10_000

type Deps = { store: ScopedStorage; clock: Clock; log: Log; driver: Driver; admission: Admit; host: Introspection; config: RunsConfig }

export function createSweep({ store, clock, log, driver, admission, host, config }: Deps) {
  const startedAt = clock.now()
  // A lease is dead when its beat stood still for `lease_ms` on this process's own clock: no two clocks are compared.
  const beats = new Map<string, { epoch: number; beat: number; since: number }>()

  const isDead = (run: Run): boolean => {
    if (run.owner === undefined || (store.exclusive && !run.owner.startsWith(host.processId))) return true
    const seen = beats.get(run.id), now = clock.monotonic()
    if (seen?.epoch === run.epoch && seen.beat === run.beat) return now - seen.since > config.lease_ms
    beats.set(run.id, { epoch: run.epoch, beat: run.beat, since: now })
    return false
  }
  const care = async (run: Run): Promise<void> => {
    if (driver.isActive(run.id)) return
    const own = store.tenant(run)
    if (run.phase === 'admitting') {
      if (run.createdAt > startedAt && clock.now() - run.createdAt < admissionMsMax) return
      const { run: placed, placed: { status } } = await admission.resume(run)
      if (status === 'running') await driver.claim(placed)
      return
    }
    if (run.status === 'queued' || run.status === 'blocked') {
      const session = await own.get(Sessions, run.sessionId)
      const mine = session?.active === run.id || (run.cancelAsked && ((await withdraw(own, run)) || !session?.queue.includes(run.id)))
      if (mine) await driver.claim(run)
      return
    }
    if (isDead(run)) await driver.claim(run)
  }
  return async function sweep(): Promise<void> {
    const open = new Set<string>()
    let after: string | undefined
    do {
      const page = await store.system(sweepReason).find(Runs, { where: { phase: { in: ['admitting', 'placed'] } }, limit: 200, ...(after === undefined ? {} : { after }) })
      for (const run of page.items) {
        open.add(run.id)
        await care(run).catch((error: unknown) => log('warn', 'sweep', { run: run.id, error }))
      }
      after = page.next
    } while (after !== undefined)
    for (const id of beats.keys()) if (!open.has(id)) beats.delete(id)
  }
}
