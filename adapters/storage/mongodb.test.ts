// The kit against the server that MONGODB_URL names: MongoDB, or one that speaks its protocol. Each
// check has a database of its own, dropped afterwards.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import { freshDatabase, mongoUrl } from '../../test/support/databases/mongodb.ts'
import { scopedStorage } from '../../test/conformance/scoped.ts'
import { things } from '../../test/conformance/storage/common.ts'
import { placementKit } from '../../test/conformance/storage/placement.ts'
import { storageKit } from '../../test/conformance/storage.ts'
import { manualClock } from '../clock/manual.ts'
import { connect } from '../_shared/mongodb/database.ts'
import { mongoStorage } from './mongodb.ts'

const placeOf = (face: typeof mongoStorage) => async () => {
  const { connect: connection, clean } = freshDatabase()
  const clock = manualClock()
  return {
    clock,
    clean,
    open: async () => face({ connection: await connection(), clock, log: () => undefined }),
  }
}

if (mongoUrl === undefined) test.skip('mongodb: the kit (MONGODB_URL is not set)', () => undefined)
else {
  test('mongodb: two processes change one document without losing a change', async () => {
    const { open, clean } = await placeOf(mongoStorage)()
    const engines = [await open(), await open()] as const
    const [first] = engines
    try {
      for (const engine of engines) await engine.define(things)
      await first.insert(things, { id: 'a', size: 0 })
      await Promise.all(
        engines.flatMap(engine =>
          Array.from({ length: 25 }, () =>
            engine.update(things, 'a', { inc: { size: 1 }, push: { list: 'x' } }),
          ),
        ),
      )
      const { size, list } = (await first.get(things, 'a'))!
      assert.equal([size, list!.length], [50, 50])
      const won = await Promise.all(
        engines.flatMap((engine, who) =>
          Array.from({ length: 25 }, (_, n) =>
            engine.update(
              things,
              'a',
              { set: { size: 0, rank: who * 100 + n } },
              { if: { size: 50 } },
            ),
          ),
        ),
      )
      assert.equal(
        won.filter(Boolean).map(doc => doc!.rank),
        [(await first.get(things, 'a'))!.rank],
      )
      const removed = await Promise.all(
        engines.map(engine => engine.remove(things, 'a', { if: { size: 0 } })),
      )
      assert.equal(removed.filter(Boolean).length, 1)
    } finally {
      for (const engine of engines) await engine.close()
      await clean()
    }
  })
  for (const [name, face] of [
    ['mongodb', mongoStorage],
    [
      'mongodb, of a tenant',
      (parts: Parameters<typeof mongoStorage>[0]) => scopedStorage(mongoStorage(parts)),
    ],
  ] as const)
    storageKit(test, name, { survives: true, place: placeOf(face) })
  placementKit(test, 'mongodb', placeOf(mongoStorage))
}

test('mongodb: an error without a server shows neither user nor password', async () => {
  const error = await connect(
    new URL('mongodb://somebody:hidden-word@127.0.0.1:1/x?serverSelectionTimeoutMS=200'),
  ).then(
    () => undefined,
    (reason: Error) => reason,
  )
  assert.ok(hasCode(error, 'UNAVAILABLE'))
  assert.is(error.message, 'The database is not available: no server that takes writes answers.')
})

test.run()
