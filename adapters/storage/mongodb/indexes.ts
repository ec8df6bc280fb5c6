// Keeps the indexes that living programs want. Each program notes in a document what it wants, and
// renews the note. So neither version of a rolling upgrade removes the other's indexes. An index
// that no program wants is dropped, because an old unique index would refuse writes.
import { isDeepStrictEqual } from 'node:util'
import { ObjectId, type Db } from 'mongodb'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Collection } from '#ports/storage.ts'
import { createKeyedQueue } from '../../_shared/keyed-queue.ts'
import { closed, orFault, serverTime } from '../../_shared/mongodb/database.ts'
import { locksIn } from '../../_shared/mongodb/lock.ts'
import { createIndexBuilds, type Wanted } from './index-builds.ts'
import { indexesOf, isOurs, isSame, type Index } from './index-definitions.ts'

/**
 * `asks`: names of indexes by collection. Until its first heartbeat a program asks for `all`
 * existing ones, which is one write instead of one for each collection.
 */
type Program = { _id: ObjectId; at: Date; all: boolean; asks: Record<string, readonly string[]> }

/**
 * How often a program renews its note, and when a silent program counts as dead, in milliseconds.
 */
export const beatMs = 60_000,
  deadMs = 300_000
const leaveMsMax = 1000
export function createIndexes({
  db,
  clock,
  log,
}: {
  db: Db
  clock: Pick<Clock, 'monotonic' | 'sleep' | 'random'>
  log: Log
}) {
  const programs = db.collection<Program>('_programs')
  const self = new ObjectId()
  const locks = locksIn(db, clock)
  const { standing, create, drop } = createIndexBuilds(db, log)
  const lanes = createKeyedQueue()
  const wants = new Map<string, Wanted>()
  const waiting = new Set<string>()
  const stopping = new AbortController()
  let beating: Promise<void> | undefined
  let beginning: Promise<unknown> | undefined
  let isPrecise = false
  let isSaid = false

  /**
   * Writes this program's note. The primary's acknowledgement is enough, and comes sooner: what a
   * fail-over loses is written again at the next heartbeat. Writes go one after the other.
   */
  const say = ($set: object) =>
    lanes.one('', () =>
      orFault(
        programs.updateOne(
          { _id: self },
          { $currentDate: { at: true }, $set },
          { upsert: true, writeConcern: { w: 1 } },
        ),
      ),
    )
  const namesOf = (indexes: readonly Index[]) => indexes.map(({ name }) => name)
  /**
   * Our indexes that no living program wants. Those that cannot be dropped yet are checked again at
   * each heartbeat.
   */
  const obsolete = async (
    name: string,
    { indexes }: Wanted,
    found: readonly Index[],
  ): Promise<readonly Index[]> => {
    const foreign = found.filter(
      one => isOurs(one) && !indexes.some(wanted => wanted.name === one.name),
    )
    if (foreign.length === 0) return waiting.delete(name), []
    waiting.add(name)
    const since = new Date((await serverTime(db)) - deadMs)
    const others = await orFault(
      programs
        .find(
          { _id: { $ne: self }, at: { $gt: since } },
          { projection: { all: 1, [`asks.${name}`]: 1 } },
        )
        .toArray(),
    )
    const asked = new Set(others.flatMap(({ asks }) => asks?.[name] ?? []))
    return others.some(({ all }) => all) ? [] : foreign.filter(one => !asked.has(one.name))
  }
  const settle = async (name: string): Promise<void> => {
    const wanted = wants.get(name)!
    const { kept, indexes } = wanted
    await locks.within(`indexes ${kept}`, {
      what: `The indexes of ${name}`,
      signal: stopping.signal,
      // The lock is checked before the indexes. A process that takes the lock in between reads what
      // this program wants.
      async isDone() {
        if (await locks.isHeld(`indexes ${kept}`)) return false
        const found = await standing(kept)
        if (!indexes.every(one => found.some(there => isSame(there, one)))) return false
        return (await obsolete(name, wanted, found)).length === 0
      },
      async act(renew) {
        await create(wanted, await standing(kept), renew)
        for (const one of await obsolete(name, wanted, await standing(kept))) {
          await renew()
          await drop(kept, one)
        }
      },
    })
  }
  const heartbeat = async (): Promise<void> => {
    const isKnown =
      (await orFault(programs.updateOne({ _id: self }, { $currentDate: { at: true } })))
        .matchedCount === 1
    // This program counted as dead meanwhile: others may have dropped indexes that it wants.
    if (!isKnown || !isSaid) {
      isPrecise = true
      await say({
        all: false,
        asks: Object.fromEntries([...wants].map(([name, { indexes }]) => [name, namesOf(indexes)])),
      })
      isSaid = true
    }
    await orFault(programs.deleteMany({ at: { $lt: new Date((await serverTime(db)) - deadMs) } }))
    for (const name of isKnown ? [...waiting] : wants.keys())
      await lanes.one(name, () => settle(name))
  }
  const beatForever = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      await clock.sleep(beatMs * (0.75 + clock.random() / 2), stopping.signal)
      await heartbeat().catch(
        (error: Error) =>
          stopping.signal.aborted || log('warn', 'mongodb.indexes', { error: error.message }),
      )
    }
  }
  const begin = () =>
    (beginning ??= say({ all: true }).then(
      () => void (beating = beatForever().catch(() => undefined)),
      (error: unknown) => {
        beginning = undefined
        throw error
      },
    ))

  return {
    /**
     * Resolves when the indexes exist. DUPLICATE where documents break a unique index. UNAVAILABLE
     * where another process works on them for too long.
     */
    want: (spec: Collection, kept: string): Promise<void> =>
      lanes.one(spec.name, async () => {
        const before = wants.get(spec.name)
        const wanted = { kept, indexes: indexesOf(spec) }
        if (before && isDeepStrictEqual(before, wanted)) return
        wants.set(spec.name, wanted)
        try {
          await (isPrecise ? say({ [`asks.${spec.name}`]: namesOf(wanted.indexes) }) : begin())
          await settle(spec.name)
        } catch (error) {
          // A refused index is not requested at the next heartbeat.
          if (before) wants.set(spec.name, before)
          else wants.delete(spec.name)
          throw stopping.signal.aborted ? closed() : error
        }
      }),
    /** Removes this program's note. */
    async close(): Promise<void> {
      stopping.abort()
      await lanes.settled()
      await beating
      // A stop does not wait for a database that is away. A note that stays there counts as dead
      // after five minutes.
      const waited = new AbortController()
      await Promise.race([
        programs.deleteOne({ _id: self }),
        clock.sleep(leaveMsMax, waited.signal),
      ]).catch(() => undefined)
      waited.abort()
    },
  }
}
