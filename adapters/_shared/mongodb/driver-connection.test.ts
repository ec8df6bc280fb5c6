// Calls whose connection ends before it took what was sent. The driver alone would wait for ever.
import { once } from 'node:events'
import { connect as connectSocket, createServer, type AddressInfo, type Socket } from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { freshDatabase, mongoUrl } from '../../../test/support/databases/mongodb.ts'
import { startProxy } from '../../../test/support/databases/proxy.ts'
import { connect, orFault } from './database.ts'
import { DriverConnection } from './driver-connection.ts'

/** More than the buffers of a connection on one machine take. */
const large = 'x'.repeat(12_000_000)

const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: { code?: string }) => error.code,
  )

/** A connection to a server that accepts it and never answers. */
async function standing(): Promise<{ socket: Socket; connection: DriverConnection; end(): void }> {
  const peers: Socket[] = []
  const server = createServer(peer => void peers.push(peer.on('error', () => undefined)))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = connectSocket((server.address() as AddressInfo).port, '127.0.0.1')
  await once(socket, 'connect')
  const options = { id: 1, hostAddress: undefined, generation: 0, monitorCommands: false }
  const end = () => {
    socket.destroy()
    for (const peer of peers) peer.destroy()
    server.close()
  }
  return { socket, connection: new DriverConnection(socket, options), end }
}

const command = (bytes: number) => ({ toBin: async () => [Buffer.alloc(bytes)] })
const uncompressed = { agreedCompressor: 'none' }

test('a small command into a socket that has just closed ends with the reason', async () => {
  const { socket, connection, end } = await standing()
  try {
    socket.destroy()
    const reason = await connection
      .writeCommand(command(16), uncompressed)
      .catch((error: Error) => error.name)
    assert.is(reason, 'MongoNetworkError')
  } finally {
    end()
  }
})

test('a large command that the socket has not taken ends when the socket closes', async () => {
  const { socket, connection, end } = await standing()
  try {
    const written = connection.writeCommand(command(large.length), uncompressed)
    setImmediate(() => socket.destroy())
    assert.is(await written.catch((error: Error) => error.name), 'MongoNetworkError')
  } finally {
    end()
  }
})

test('a command that the socket takes leaves no listener behind', async () => {
  const { connection, end } = await standing()
  try {
    for (let i = 0; i < 20; i++) await connection.writeCommand(command(16), uncompressed)
    assert.is(connection.listenerCount('close'), 0)
  } finally {
    end()
  }
})

async function check(): Promise<void> {
  const { url, clean } = freshDatabase()
  const network = await startProxy(() => [Number(url.port || 27_017)], url.hostname)
  const through = new URL(`mongodb://127.0.0.1:${network.port}${url.pathname}`)
  through.search =
    'directConnection=true&maxPoolSize=1&socketTimeoutMS=1000&serverSelectionTimeoutMS=1000'
  const { db, close } = await connect(through)
  try {
    const things = db.collection<{ _id: number; text: string }>('things')
    await things.insertOne({ _id: 1, text: 'small' })
    network.cut()
    assert.is(
      await codeOf(orFault(things.insertMany([{ _id: 2, text: large }]))),
      'UNAVAILABLE',
      'a large write',
    )
    assert.is(await codeOf(orFault(things.findOne({ _id: 1 }))), 'UNAVAILABLE', 'a read')
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
  'mongodb: calls into a network that takes nothing end, and their connection serves again'
if (mongoUrl === undefined) test.skip(`${title} (MONGODB_URL is not set)`, () => undefined)
else test(title, check)

test.run()
