// What one user and one address may take of streams, bodies and unread answers.
import type { Socket } from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { headerOf, say } from '../../../test/hostile/wire.ts'
import { begun, get, holding, large, serving, until } from '../../../test/support/http-adapter.ts'

const serve = serving(test)

test('one user, and one address, has no more than a share of the streams', async () => {
  const { port, server } = await serve({ streams: { total: 6, perUser: 2, perAddress: 4 } })
  const held: Socket[] = []
  const stream = async (user: string, address: string) => {
    const before = server.openStreams()
    const socket = await holding(
      port,
      get('/stream', `X-User: ${user}`, `X-Forwarded-For: ${address}`),
    )
    held.push(socket)
    await until(() => server.openStreams() === before + 1, 'it is open')
  }
  const refused = async (user: string, address: string) => {
    const heard = await say(port, [
      get('/stream', 'Connection: close', `X-User: ${user}`, `X-Forwarded-For: ${address}`),
    ])
    assert.is(headerOf(heard, 'retry-after'), '5')
    return heard.status
  }
  await stream('a', '2001:db8::1')
  await stream('a', '2001:db8::2')
  assert.is(await refused('a', '10.0.0.1'), 429)
  await stream('b', '2001:db8::3')
  await stream('b', '2001:db8::ffff:1:2')
  assert.is(await refused('c', '2001:db8::4:5:6:7'), 429, 'the same network')
  await stream('c', '10.0.0.1')
  await stream('c', '10.0.0.2')
  assert.is(await refused('d', '10.0.0.3'), 503, 'all are taken')
  held[0]!.destroy()
  await until(() => server.openStreams() === 5, 'one has left')
  await stream('d', '10.0.0.3')
  for (const socket of held) socket.destroy()
})

test('bodies that trickle in take no more than a share either; whole ones need none', async () => {
  for (const path of ['/body', '/pieces']) {
    const { port, seen } = await serve({ bodies: { total: 4, perUser: 2, perAddress: 3 } })
    const held: Socket[] = []
    const trickle = async (user: string) =>
      held.push(await holding(port, begun(path, `X-User: ${user}`)))
    await trickle('a')
    await trickle('a')
    await until(() => seen.length === 2, 'they are being read')
    assert.is((await say(port, [begun(path, 'X-User: a', 'Connection: close')])).status, 429)
    await trickle('b')
    await until(() => seen.length === 4, 'they are being read')
    assert.is(
      (await say(port, [begun(path, 'X-User: c', 'Connection: close')])).status,
      429,
      'by address',
    )
    if (path === '/body')
      assert.is(
        (
          await say(port, [
            'POST /body HTTP/1.1\r\nHost: x\r\nX-User: a\r\nConnection: ' +
              'close\r\nContent-Length: 2\r\n\r\n{}',
          ])
        ).status,
        200,
      )
    for (const socket of held) socket.destroy()
  }
})

test('answers that wait for their readers are bounded in bytes', async () => {
  const { port, seen } = await serve({
    unreadBytes: { total: 20 << 20, perUser: 20 << 20, perAddress: 9 << 20 },
  })
  const held = [await holding(port, get('/large')), await holding(port, get('/large'))]
  await until(() => seen.length === 2, 'they are answered')
  const third = await say(port, [get('/large', 'Connection: close')])
  assert.equal([third.status, headerOf(third, 'retry-after')], [429, '5'])
  assert.is(
    (await say(port, [get('/who', 'Connection: close')])).status,
    200,
    'small ones are not counted',
  )
  held[0]!.destroy()
  await until(() => seen[0]!.signal.aborted, 'one has gone')
  const heard = await say(port, [get('/large', 'Connection: close')])
  assert.is(heard.status, 200)
  assert.ok(heard.bytes > large.length, 'read to its end')
  held[1]!.destroy()
})

test.run()
