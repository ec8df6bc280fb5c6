// A lock across processes. It expires by the server's clock, because clocks of processes are not
// compared.
import { ObjectId, type Db } from 'mongodb'
import { fault, hasCode } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import { orFault, serverTime } from './database.ts'

/** `at`: when its holder last renewed it, by the server. */
type Held = { _id: string; owner: ObjectId; at: Date }

/**
 * Milliseconds without renewal after which others may take a lock. A step between two renewals is
 * one call, which ends sooner.
 */
export const leaseMs = 60_000
/**
 * Milliseconds between two looks of a waiter, and the longest wait, which exceeds a dead holder's
 * lease.
 */
const lookMs = 250
const waitMsMax = 90_000

export type Locks = ReturnType<typeof locksIn>
export function locksIn(db: Db, clock: Pick<Clock, 'monotonic' | 'sleep' | 'random'>) {
  const locks = db.collection<Held>('_locks')
  const renewed = { $currentDate: { at: true } } as const

  const take = async (name: string, owner: ObjectId): Promise<boolean> => {
    const held = await orFault(locks.findOne({ _id: name }))
    if (!held)
      return orFault(locks.updateOne({ _id: name, owner }, renewed, { upsert: true })).then(
        () => true,
        (error: unknown) => {
          if (hasCode(error, 'DUPLICATE')) return false
          throw error
        },
      )
    if (held.at.getTime() + leaseMs > (await serverTime(db))) return false
    return (
      (
        await orFault(
          locks.updateOne(
            { _id: name, owner: held.owner, at: held.at },
            { $set: { owner }, ...renewed },
          ),
        )
      ).matchedCount === 1
    )
  }
  return {
    /** True for a dead holder's lock too, because its work may be unfinished. */
    isHeld: async (name: string): Promise<boolean> =>
      (await orFault(locks.findOne({ _id: name }, { projection: { _id: 1 } }))) !== null,
    /**
     * Runs `act` under the lock, unless `isDone` answers true first. `renew`, called between steps,
     * throws when another process has the lock by now. UNAVAILABLE after 90 s; `what` begins that
     * sentence.
     */
    async within(
      name: string,
      {
        what,
        signal,
        isDone,
        act,
      }: {
        what: string
        signal: AbortSignal
        isDone: () => Promise<boolean>
        act: (renew: () => Promise<void>) => Promise<void>
      },
    ): Promise<void> {
      const owner = new ObjectId()
      const end = clock.monotonic() + waitMsMax
      for (;;) {
        if (await isDone()) return
        if (await take(name, owner)) break
        if (clock.monotonic() >= end)
          throw fault(
            'UNAVAILABLE',
            { what, why: `another process has been at them for ${waitMsMax / 1000} s` },
            { retryAfterMs: 1000 },
          )
        await clock.sleep(lookMs * (0.5 + clock.random()), signal)
      }
      const renew = async () => {
        if ((await orFault(locks.updateOne({ _id: name, owner }, renewed))).matchedCount === 0)
          throw fault(
            'UNAVAILABLE',
            { what, why: 'another process took them over' },
            { retryAfterMs: 1000 },
          )
      }
      let isKnown = true
      try {
        await act(renew)
      } catch (error) {
        // A call that was given up may still run at the server, so the next holder waits for the
        // lease.
        isKnown = !hasCode(error, 'UNAVAILABLE')
        throw error
      } finally {
        if (isKnown) await orFault(locks.deleteOne({ _id: name, owner }))
      }
    },
  }
}
