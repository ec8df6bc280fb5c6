// Several programs that keep the indexes of one collection on the server that MONGODB_URL names.
import type { Db, ObjectId } from 'mongodb'
import * as assert from 'uvu/assert'
import type { ManualClock } from '#adapters/clock/manual.ts'
import { systemClock } from '#adapters/clock/system.ts'
import { createIndexes } from '#adapters/storage/mongodb/indexes.ts'
import { collection } from '#ports/storage.ts'
import { freshDatabase } from './mongodb.ts'

const spec = (given: { unique?: string[][]; index?: string[][] }) =>
  collection({ name: 'things', scope: 'platform', ...given })
export const kept = 'c_things'
export const lock = `indexes ${kept}`
export type Locked = { _id: string; owner: ObjectId; at: Date }
export type Programs = { _id: ObjectId; at: Date; all?: boolean; asks: Record<string, string[]> }

export async function inDatabase(
  run: (at: {
    db: Db
    program(clock?: ManualClock): Promise<ReturnType<typeof createIndexes>>
    names(): Promise<string[]>
    locks(): Promise<Locked[]>
  }) => Promise<void>,
): Promise<void> {
  const { connect, clean } = freshDatabase()
  const ending: (() => Promise<void>)[] = []
  const { db, close } = await connect()
  ending.push(close)
  try {
    await run({
      db,
      async program(clock) {
        const own = await connect()
        const indexes = createIndexes({
          db: own.db,
          clock: clock ?? systemClock(),
          log: () => undefined,
        })
        ending.push(() => indexes.close().then(own.close))
        return indexes
      },
      names: async () =>
        (await db.collection(kept).indexes())
          .map(({ name }) => name!)
          .filter(name => name !== '_id_')
          .sort(),
      locks: () => db.collection<Locked>('_locks').find().toArray(),
    })
  } finally {
    for (const end of ending.reverse()) await end()
    await clean()
  }
}
export const wantAll = (
  program: ReturnType<typeof createIndexes>,
  given: Parameters<typeof spec>[0],
) => program.want(spec(given), kept)
/** Moves the clock on, while servers answer in real time. */
export async function passes(
  clock: ManualClock,
  ms: number,
  until: () => Promise<boolean>,
  step = 1000,
): Promise<void> {
  for (let passed = 0; passed <= ms; passed += step) {
    if (await until()) return
    await clock.advance(step)
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  for (let tries = 0; tries < 300; tries++) {
    if (await until()) return
    await new Promise(resolve => setTimeout(resolve, 10))
  }
  assert.unreachable('in vain')
}
export const isThere = (names: () => Promise<string[]>, name: string) => async () =>
  (await names()).includes(name)
export const isGone = (names: () => Promise<string[]>, name: string) => async () =>
  !(await names()).includes(name)
export const takesTwo = (db: Db, doc: object) =>
  db
    .collection(kept)
    .insertMany([{ ...doc }, { ...doc }])
    .then(
      () => true,
      () => false,
    )
