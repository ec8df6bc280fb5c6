// Several programs and one collection. An index that a living program wants stays, any other is
// dropped, and one program at a time changes them.
import { ObjectId, type Db } from 'mongodb'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import { collection } from '#ports/storage.ts'
import { freshDatabase, mongoUrl } from '../../../test/support/databases/mongodb.ts'
import { manualClock, type ManualClock } from '../../clock/manual.ts'
import { systemClock } from '../../clock/system.ts'
import { serverTime } from '../../_shared/mongodb/database.ts'
import { beatMs, createIndexes, deadMs } from './indexes.ts'
import { leaseMs } from '../../_shared/mongodb/lock.ts'

const spec = (given: { unique?: string[][]; index?: string[][] }) =>
  collection({ name: 'things', scope: 'platform', ...given })
const kept = 'c_things'
const lock = `indexes ${kept}`
type Locked = { _id: string; owner: ObjectId; at: Date }
type Programs = { _id: ObjectId; at: Date; all?: boolean; asks: Record<string, string[]> }

async function inDatabase(
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
const wantAll = (program: ReturnType<typeof createIndexes>, given: Parameters<typeof spec>[0]) =>
  program.want(spec(given), kept)
/** Moves the clock on, while servers answer in real time. */
async function passes(
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
const isThere = (names: () => Promise<string[]>, name: string) => async () =>
  (await names()).includes(name)
const isGone = (names: () => Promise<string[]>, name: string) => async () =>
  !(await names()).includes(name)
const takesTwo = (db: Db, doc: object) =>
  db
    .collection(kept)
    .insertMany([{ ...doc }, { ...doc }])
    .then(
      () => true,
      () => false,
    )

if (mongoUrl === undefined) test.skip('mongodb: indexes (MONGODB_URL is not set)', () => undefined)
else {
  test('six programs that begin at once make all their indexes and leave no lock', () =>
    inDatabase(async ({ db, program, names, locks }) => {
      const programs = await Promise.all(Array.from({ length: 6 }, () => program()))
      await Promise.all(
        programs.map((one, n) =>
          wantAll(one, { unique: [['a', 'b'], [`u${n % 3}`]], index: [['c'], [`i${n}`]] }),
        ),
      )
      assert.equal(await names(), [
        'i_c',
        'i_i0',
        'i_i1',
        'i_i2',
        'i_i3',
        'i_i4',
        'i_i5',
        'u_a_b',
        'u_u0',
        'u_u1',
        'u_u2',
      ])
      assert.equal(await locks(), [])
      assert.is(await takesTwo(db, { a: 1, b: 1 }), false)
      assert.is(await takesTwo(db, { a: 1 }), true)
    }))

  test('a start with all its indexes takes no lock and waits for no dead holder elsewhere', () =>
    inDatabase(async ({ db, program, locks }) => {
      await wantAll(await program(), { unique: [['a']] })
      await db.collection<Locked>('_locks').insertOne({
        _id: 'indexes c_others',
        owner: new ObjectId(),
        at: new Date(await serverTime(db)),
      })
      const clock = manualClock()
      await wantAll(await program(clock), { unique: [['a']] })
      assert.is((await locks()).length, 1)
    }))

  test('who finds it locked waits for the holder, even if all indexes stand', () =>
    inDatabase(async ({ db, program, locks }) => {
      await wantAll(await program(), { unique: [['a']] })
      await db
        .collection<Locked>('_locks')
        .insertOne({ _id: lock, owner: new ObjectId(), at: new Date(await serverTime(db)) })
      const clock = manualClock()
      const second = await program(clock)
      let isDone = false
      const wanting = wantAll(second, { unique: [['a']] }).then(() => {
        isDone = true
      })
      for (let n = 0; n < 5; n++) {
        await new Promise(resolve => setTimeout(resolve, 20))
        await clock.advance(1000)
      }
      assert.is(isDone, false)
      await db.collection<Locked>('_locks').deleteOne({ _id: lock })
      await passes(clock, 10_000, async () => isDone)
      await wanting
      assert.equal(await locks(), [])
    }))

  test('a start waits a minute and a half for a holder, then fails and leaves its lock', () =>
    inDatabase(async ({ db, program, names, locks }) => {
      const owner = new ObjectId()
      await db
        .collection<Locked>('_locks')
        .insertOne({ _id: lock, owner, at: new Date((await serverTime(db)) + 600_000) })
      const clock = manualClock()
      let refused: Error | undefined
      void wantAll(await program(clock), { unique: [['a']] }).catch((error: Error) => {
        refused = error
      })
      await passes(clock, 100_000, async () => refused !== undefined, 500)
      assert.ok(hasCode(refused, 'UNAVAILABLE'))
      assert.is(
        refused!.message,
        'The indexes of things is not available: another process has been at them for 90 s.',
      )
      assert.equal(await names().catch(() => []), [])
      assert.equal(
        (await locks()).map(one => String(one.owner)),
        [String(owner)],
      )
    }))

  test('one of two that wait takes over the lock of a dead holder after its lease', () =>
    inDatabase(async ({ db, program, names, locks }) => {
      await db.collection<Locked>('_locks').insertOne({
        _id: lock,
        owner: new ObjectId(),
        at: new Date((await serverTime(db)) - leaseMs + 1500),
      })
      const clock = manualClock()
      const two = await Promise.all([program(clock), program(clock)])
      const since = performance.now()
      let done = 0
      for (const one of two) void wantAll(one, { unique: [['a']] }).then(() => done++)
      await passes(clock, 60_000, async () => done === 2, 200)
      assert.ok(performance.now() - since > 1200, 'before its lease ended')
      assert.equal([await names(), await locks()], [['u_a'], []])
    }))

  test('a unique index stays exactly as long as a living program asks for it', () =>
    inDatabase(async ({ db, program, names }) => {
      const clock = manualClock()
      const before = await program(clock)
      const after = await program(clock)
      await wantAll(before, { unique: [['a'], ['b']], index: [['c']] })
      await wantAll(after, { unique: [['a'], ['n']] })
      const all = ['i_c', 'u_a', 'u_b', 'u_n']
      assert.equal(await names(), all)
      // Another process of the former version starts, and the new one checks again. Neither drops
      // what the other needs.
      const again = await program(clock)
      await wantAll(again, { unique: [['a'], ['b']], index: [['c']] })
      await clock.advance(2 * beatMs)
      assert.equal(await names(), all)
      await again.close()
      await before.close()
      await passes(clock, 2 * beatMs, isGone(names, 'u_b'))
      await passes(clock, 2 * beatMs, isGone(names, 'i_c'))
      assert.equal(
        [
          await names(),
          await takesTwo(db, { b: 1 }),
          await takesTwo(db, { a: 1 }),
          await takesTwo(db, { n: 1 }),
        ],
        [['u_a', 'u_n'], true, false, false],
      )
    }))

  test('what a dead program asked for is dropped after five minutes of silence, not before', () =>
    inDatabase(async ({ db, program, names }) => {
      const programs = db.collection<Programs>('_programs')
      const died = new ObjectId()
      const at = async (ms: number) => new Date((await serverTime(db)) - ms)
      const first = await program()
      await wantAll(first, { unique: [['a']] })
      await first.close()
      await db.collection(kept).createIndex({ b: 1 }, { name: 'u_b', unique: true })
      await programs.insertOne({
        _id: died,
        at: await at(deadMs - 30_000),
        asks: { things: ['u_b'] },
      })
      const second = await program()
      await wantAll(second, { unique: [['a']] })
      assert.equal(await names(), ['u_a', 'u_b'])
      await second.close()
      await programs.updateOne({ _id: died }, { $set: { at: await at(deadMs + 1000) } })
      const clock = manualClock()
      await wantAll(await program(clock), { unique: [['a']] })
      assert.equal(await names(), ['u_a'])
      await passes(
        clock,
        2 * beatMs,
        async () => (await programs.countDocuments({ _id: died })) === 0,
      )
    }))

  test('a program counted as dead asks again, and makes again what was dropped', () =>
    inDatabase(async ({ db, program, names }) => {
      const clock = manualClock()
      const programs = db.collection<Programs>('_programs')
      const one = await program(clock)
      await wantAll(one, { unique: [['a']] })
      await clock.advance(2 * beatMs)
      await wantAll(one, { unique: [['a']], index: [['c']] })
      await programs.deleteMany({})
      await db.collection(kept).dropIndex('u_a')
      await passes(clock, 2 * beatMs, isThere(names, 'u_a'))
      assert.equal(
        (await programs.find().toArray()).map(({ all, asks }) => ({ all, asks })),
        [{ all: false, asks: { things: ['u_a', 'i_c'] } }],
      )
    }))

  test('a new program asks for all that stands until its first beat, then for its own', () =>
    inDatabase(async ({ db, program, names }) => {
      const clock = manualClock()
      const programs = db.collection<Programs>('_programs')
      const starting = await program(clock)
      const other = await program()
      await wantAll(starting, { unique: [['a']] })
      await db.collection(kept).createIndex({ b: 1 }, { name: 'u_b', unique: true })
      await wantAll(other, { unique: [['a']] })
      assert.equal(await names(), ['u_a', 'u_b'])
      await other.close()
      await passes(
        clock,
        2 * beatMs,
        async () => (await programs.countDocuments({ all: true })) === 0,
      )
      await wantAll(starting, { unique: [['a'], ['n']] })
      assert.equal(
        (await programs.find().toArray()).map(({ asks }) => asks),
        [{ things: ['u_a', 'u_n'] }],
      )
      await wantAll(await program(), { unique: [['a']] })
      assert.equal(await names(), ['u_a', 'u_n'])
    }))

  test('an index of other options for the same fields or name is made anew', () =>
    inDatabase(async ({ db, program, names }) => {
      const first = await program()
      await wantAll(first, { unique: [['a', 'id']] })
      await first.close()
      const second = await program()
      await wantAll(second, { index: [['a', 'id'], ['c']] })
      assert.equal(await names(), ['i_a_id', 'i_c'])
      await db.collection(kept).createIndex({ x: 1 }, { name: 'u_d' })
      await db.collection(kept).createIndex({ e: 1 }, { name: 'u_e', unique: true })
      await wantAll(await program(), { unique: [['d'], ['e']], index: [['c'], ['a', 'id']] })
      assert.equal(
        [
          await takesTwo(db, { d: 1 }),
          await takesTwo(db, { x: 1 }),
          await takesTwo(db, { e: 1 }),
          await takesTwo(db, { d: null, e: null }),
        ],
        [false, true, false, true],
      )
    }))

  test("an operator's own index stays; it serves if it is the same, else it is named", () =>
    inDatabase(async ({ db, program, names }) => {
      await db.collection(kept).createIndexes([
        { key: { c: 1, _id: 1 }, name: 'theirs' },
        { key: { z: 1 }, name: 'more' },
      ])
      await wantAll(await program(), { index: [['c']] })
      assert.equal(await names(), ['more', 'theirs'])
      await db.collection(kept).createIndex({ a: 1 }, { name: 'plain' })
      const why = await wantAll(await program(), { unique: [['a']] }).then(
        () => 'it stands',
        (error: Error) => error.message,
      )
      // A server before 5.0 allows one index for each key; a later one keeps both.
      assert.ok(
        why === 'it stands' ||
          /^The index of a in c_things is not available: there is one by the name plain/.test(why),
        why,
      )
      assert.ok((await names()).includes('plain'))
    }))
}
test.run()
