// Requests that are sent before the answer to the one before them.
import { connect } from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { get, holding, serving, until } from '../../../test/support/http-adapter.ts'

const serve = serving(test)

test('requests that are sent at once are answered in order, one at a time', async () => {
  const { port, seen, most } = await serve()
  const socket = await holding(
    port,
    Array.from({ length: 500 }, (_, i) => get(`/who?${i}`)).join('') +
      get('/slow').repeat(3) +
      get('/who?last', 'Connection: close'),
  )
  let text = ''
  await new Promise(done =>
    socket
      .on('data', part => {
        text += part.toString('latin1')
      })
      .on('close', done)
      .resume(),
  )
  assert.equal(
    [...text.matchAll(/"query":"(\w+)"/g)].map(([, query]) => query),
    [...Array.from({ length: 500 }, (_, i) => String(i)), 'last'],
  )
  assert.equal([seen.length, most()], [504, 1])
})

test('requests behind a stream wait, and go with their connection', async () => {
  const { port, seen, server } = await serve()
  const socket = await holding(port, get('/stream') + get('/stream') + get('/who').repeat(100))
  await until(() => server.openStreams() === 1, 'the first is open')
  socket.resetAndDestroy()
  await until(() => server.openStreams() === 0, 'it is closed')
  assert.is(seen.length, 1)
})

test('requests that wait behind an answer are so many on all connections together', async () => {
  const { port, release } = await serve()
  const behind = 500
  const connections = 40
  const text =
    'GET /gate HTTP/1.1\r\nhost: x\r\n\r\n' + 'GET /who HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(behind)
  let closed = 0
  const answers = Array.from(
    { length: connections },
    () =>
      new Promise<number>(done => {
        let heard = ''
        let count = 0
        const socket = connect(port, '127.0.0.1', () => socket.write(text))
        socket
          .on('error', () => undefined)
          .on('close', () => {
            closed++
            done(count)
          })
        socket.on('data', part => {
          const lines = (heard + part.toString('latin1')).split('\r\n')
          // The last line may go on in the next part.
          heard = lines.pop()!
          count += lines.filter(line => line.endsWith('HTTP/1.1 200 OK')).length
          if (count === behind + 1) done(count)
        })
      }),
  )
  const roomFor = 21
  for (let wait = 0; closed < connections - roomFor && wait < 200; wait++)
    await new Promise(soon => setTimeout(soon, 25))
  assert.ok(closed >= connections - roomFor, `${closed} of ${connections} connections have ended`)
  release()
  const full = (await Promise.all(answers)).filter(count => count === behind + 1).length
  assert.ok(full > 0 && full <= roomFor, `${full} are answered to the last request`)
})

test.run()
