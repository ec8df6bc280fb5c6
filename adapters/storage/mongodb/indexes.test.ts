// Several programs and one collection: an index that a living program wants stays, any other is
// dropped.
import { ObjectId } from 'mongodb'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  inDatabase,
  isGone,
  isThere,
  kept,
  passes,
  takesTwo,
  type Programs,
  wantAll,
} from '../../../test/support/databases/index-programs.ts'
import { mongoUrl } from '../../../test/support/databases/mongodb.ts'
import { manualClock } from '../../clock/manual.ts'
import { serverTime } from '../../_shared/mongodb/database.ts'
import { beatMs, deadMs } from './indexes.ts'

if (mongoUrl === undefined) test.skip('mongodb: indexes (MONGODB_URL is not set)', () => undefined)
else {
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
}

test.run()
