// The kit against the server that MONGODB_URL names: MongoDB, or one that speaks its protocol. Each check has a database of its own, dropped afterwards.
import { randomUUID } from 'node:crypto'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import { scopedStorage } from '../../test/kit/scoped.ts'
import { storageKit } from '../../test/kit/storage.ts'
import { manualClock } from '../clock/manual.ts'
import { connect } from '../_shared/mongodb/database.ts'
import { mongoStorage } from './mongodb.ts'

const given = process.env['MONGODB_URL']

const placeOf = (face: typeof mongoStorage) => async () => {
  const url = new URL(given!), clock = manualClock()
  url.pathname = `/kit_${randomUUID().slice(0, 8)}`
  return {
    clock,
    open: async () => face({ connection: await connect(url), clock }),
    async clean() {
      const { db, close } = await connect(url)
      await db.dropDatabase()
      await close()
    },
  }
}

if (given === undefined) test.skip('mongodb: the kit (MONGODB_URL is not set)', () => undefined)
else {
  for (const [name, face] of [['mongodb', mongoStorage], ['mongodb, of a tenant', (parts: Parameters<typeof mongoStorage>[0]) => scopedStorage(mongoStorage(parts))]] as const) storageKit(test, name, { survives: true, place: placeOf(face) })
}

test('mongodb: where no server answers, a sentence says so, and neither user nor password is told', async () => {
  const error = await connect(new URL('mongodb://somebody:hidden-word@127.0.0.1:1/x?serverSelectionTimeoutMS=200')).then(() => undefined, (reason: Error) => reason)
  assert.ok(hasCode(error, 'UNAVAILABLE'))
  assert.is(error.message, 'The database is not available: no server that takes writes answers.')
})

test.run()
