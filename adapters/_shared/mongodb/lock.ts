// One process at a time does what must not be done twice side by side. A holder that died is told
// by the server's clock: those of the processes are not compared.
import { ObjectId, type Db } from 'mongodb'
import { fault, hasCode } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import { orFault, serverTime } from './database.ts'

/** `at`: when its holder last renewed it, by the server. */
type Held = { _id: string; owner: ObjectId; at: Date }

/**
 * Without a renewal for so long, in milliseconds, a lock is anybody's; a step between two renewals
 * is one call, which ends sooner.
 */
export const leaseMs = 60_000
/**
 * How often whoever waits looks, and how long it waits at most, in milliseconds: longer than a dead
 * holder's lease.
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
    /** By a dead holder too: what it left undone is not known. */
    isHeld: async (name: string): Promise<boolean> =>
      (await orFault(locks.findOne({ _id: name }, { projection: { _id: 1 } }))) !== null,
    /**
     * Calls `act` as the only one, unless `isDone` answers true before; `renew`, called between its
     * steps, throws when the lock is another's by now. UNAVAILABLE after 90 s in vain. `what`
     * begins that sentence.
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
        // A call that was given up may still be at work at the server: the lease says when it is
        // somebody else's turn.
        isKnown = !hasCode(error, 'UNAVAILABLE')
        throw error
      } finally {
        if (isKnown) await orFault(locks.deleteOne({ _id: name, owner }))
      }
    },
  }
}
