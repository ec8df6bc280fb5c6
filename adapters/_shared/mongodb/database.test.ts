// How a deployment is named, and that it is found by any of its hosts.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { loadAdapter } from '../../../kernel/adapters.ts'
import { mongoUrl } from '../../../test/support/databases/mongodb.ts'
import { freePort } from '../../../test/support/process.ts'
import { connect, hrefOf } from './database.ts'

const read = async (value: string) =>
  hrefOf((await loadAdapter('storage', 'STORAGE_URL', value, [])).url)

test('a mongodb: URL reaches the driver as it was written, with one host or several', async () => {
  for (const value of [
    'mongodb://db.example/app',
    'mongodb://ann:p%40ss@a.example:27017,b.example:27018/app?replicaSet=rs0&tls=true',
    'mongodb://a.example:27017,b.example:27017,c.example/app',
    'mongodb://[::1]:27017/app',
  ])
    assert.is(await read(value), value)
  assert.is(
    await read('mongodb://cluster.example/app?srv=true&appName=x'),
    'mongodb+srv://cluster.example/app?appName=x',
  )
})

test('an option that there is not is refused, and no password is told', async () => {
  const refused = await loadAdapter(
    'storage',
    'STORAGE_URL',
    'mongodb://ann:hidden@a:1,b:2/app?replicasets=rs0',
    [],
  ).catch((error: Error) => error.message)
  assert.match(String(refused), /has no option "replicasets"/)
  assert.not.match(String(refused), /hidden/)
})

if (mongoUrl === undefined)
  test.skip('mongodb: reads are of what a majority has (MONGODB_URL is not set)', () => undefined)
else
  test('mongodb: reads ask for what a majority has, writes wait for one', async () => {
    const { db, close } = await connect(new URL(mongoUrl!))
    const { readConcern, writeConcern, readPreference } = db.collection('things')
    assert.equal(
      [readConcern?.level, writeConcern?.w, writeConcern?.journal, readPreference?.mode],
      ['majority', 'majority', true, 'primary'],
    )
    await close()
  })

if (mongoUrl === undefined)
  test.skip('mongodb: found by its second host (MONGODB_URL is not set)', () => undefined)
else
  test('mongodb: found by its second host, where the first does not answer', async () => {
    const { host } = new URL(mongoUrl!)
    const url = new URL(`mongodb://127.0.0.1:${await freePort()}/app?hosts=${host}`)
    const { ping, close } = await connect(url)
    await ping()
    await close()
  })

test.run()
