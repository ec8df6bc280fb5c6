// A call whose connection ends before all data was sent: the driver alone would wait for ever.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { freshDatabase, mongoUrl } from '../../../test/support/databases/mongodb.ts'
import { startProxy } from '../../../test/support/databases/proxy.ts'
import { connect, orFault } from './database.ts'

/** More than the buffers of a connection on one machine take. */
const large = 'x'.repeat(12_000_000)

async function check(): Promise<void> {
  const { url, clean } = freshDatabase()
  const network = await startProxy(() => [Number(url.port || 27_017)], url.hostname)
  const through = new URL(`mongodb://127.0.0.1:${network.port}${url.pathname}`)
  through.search =
    'directConnection=true&maxPoolSize=1&socketTimeoutMS=1000&serverSelectionTimeoutMS=1000'
  const { db, send, close } = await connect(through)
  try {
    const things = db.collection<{ _id: number; text: string }>('things')
    await things.insertOne({ _id: 1, text: 'small' })
    network.cut()
    const sent = orFault(send(bound => things.insertMany([{ _id: 2, text: large }], { ...bound })))
    const failure = await sent.then(
      () => undefined,
      (error: { code?: string }) => error.code,
    )
    assert.is(failure, 'UNAVAILABLE')
    network.heal()
    assert.is(
      (await things.findOne({ _id: 1 }))?.text,
      'small',
      'the one connection of the pool is free again',
    )
  } finally {
    await close()
    await network.close()
    await clean()
  }
}

const title =
  'mongodb: a large write into a network that takes nothing ends, and its connection serves again'
if (mongoUrl === undefined) test.skip(`${title} (MONGODB_URL is not set)`, () => undefined)
else test(title, check)

test.run()
