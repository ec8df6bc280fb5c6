// Several programs and one collection: one program at a time changes its indexes.
import { ObjectId } from 'mongodb'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import {
  inDatabase,
  lock,
  passes,
  takesTwo,
  type Locked,
  wantAll,
} from '../../../test/support/databases/index-programs.ts'
import { mongoUrl } from '../../../test/support/databases/mongodb.ts'
import { manualClock } from '../../clock/manual.ts'
import { serverTime } from '../../_shared/mongodb/database.ts'
import { leaseMs } from '../../_shared/mongodb/lock.ts'

if (mongoUrl === undefined)
  test.skip('mongodb: locks of indexes (MONGODB_URL is not set)', () => undefined)
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
}

test.run()
