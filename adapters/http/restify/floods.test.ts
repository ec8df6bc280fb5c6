import { connect, type Socket } from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ended, get, serving, until } from '../../../test/support/http-adapter.ts'
import { systemClock } from '../../clock/system.ts'

const serve = serving(test)

test('a flood ends with the idle connections of its address; others are served', async () => {
  const clock = systemClock()
  let now = clock.monotonic()
  const { port, server } = await serve({ trustProxy: 0 }, { ...clock, monotonic: () => now })
  const from = (localAddress: string, text: string) =>
    new Promise<Socket>(done => {
      const socket: Socket = connect({ port, host: '127.0.0.1', localAddress }, () =>
        socket.write(text, () => done(socket)),
      )
      socket.on('error', () => undefined)
    })
  const goneAfter = async (sockets: readonly Socket[], what: string) => {
    for (const socket of sockets) socket.resume()
    await until(() => sockets.every(({ closed }) => closed), what)
  }
  const one = get('/who')
  const answered = async (localAddress: string) => {
    const socket = await from(localAddress, get('/who', 'Connection: close'))
    return (await ended(socket)).startsWith('HTTP/1.1 200')
  }
  const follower = await from('127.0.0.2', get('/stream'))
  const idle = await from('127.0.0.2', one)
  const other = await from('127.0.0.3', one)
  await until(() => server.openStreams() === 1, 'the stream is open')
  await goneAfter(
    [await from('127.0.0.2', one.repeat(1000)), idle],
    'the flood and what was idle have ended',
  )
  assert.equal(
    [follower.closed, other.closed],
    [false, false],
    'a stream goes on, another address is left alone',
  )
  assert.is(await answered('127.0.0.2'), false, 'no connection is taken from the address')
  assert.ok(await answered('127.0.0.3'))
  now += 10_000
  assert.ok(await answered('127.0.0.2'), 'later it is served again')
  for (const socket of [follower, other]) socket.destroy()
})

test.run()
