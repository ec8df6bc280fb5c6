// Cases that no well-behaved client causes: silence, readers that do not read, shares, pipelines,
// tunnels, the stop.
import { connect, type Socket } from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createRestify } from './restify.ts'
import { isFault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import type { HttpAnswer, HttpRequest, HttpServer, HttpSettings, Route } from '#ports/http.ts'
import { bindAdapters } from '../../kernel/engines.ts'
import { readSettings } from '../../kernel/settings/settings.ts'
import { headerOf, say } from '../../test/hostile/wire.ts'

const env = { DATA_DIR: '/tmp' }
const clock = (
  await bindAdapters({ env, settings: readSettings(env), log: () => undefined, only: ['clock'] })
).engine<Clock>('clock')
const open = { total: 100, perUser: 100, perAddress: 100 }
const usual: HttpSettings = {
  host: '127.0.0.1',
  port: 0,
  trustProxy: 1,
  corsOrigins: [],
  streams: open,
  bodies: open,
  unreadBytes: { total: 1 << 30, perUser: 1 << 30, perAddress: 1 << 30 },
  bodyBytesPerSecondMin: 1,
  silenceMs: 20_000,
  headMs: 20_000,
}

const json = (value: unknown): HttpAnswer => ({
  status: 200,
  headers: {},
  content: { kind: 'json', text: JSON.stringify(value) },
})
const refuse = (error: unknown): HttpAnswer =>
  isFault(error)
    ? {
        ...json({ code: error.code }),
        status: error.status,
        headers: error.retryAfterMs ? { 'retry-after': String(error.retryAfterMs / 1000) } : {},
      }
    : { ...json({ code: 'INTERNAL' }), status: 500 }
const large = 'x'.repeat(4 << 20)
const never = (signal: AbortSignal) =>
  (async function* () {
    await new Promise(done => signal.addEventListener('abort', done))
  })()

const served = new Set<HttpServer>()
async function serve(settings: Partial<HttpSettings> = {}, time = clock) {
  const server = createRestify({ clock: time, log: () => undefined })
  const seen: HttpRequest[] = []
  const gate = Promise.withResolvers<void>()
  let inside = 0
  let most = 0
  const on = (
    method: Route['method'],
    path: string,
    act: (request: HttpRequest) => Promise<HttpAnswer> | HttpAnswer,
  ): Route => ({
    method,
    path,
    handle: async request => {
      seen.push(request)
      most = Math.max(most, ++inside)
      try {
        return await act(request)
      } catch (error) {
        return refuse(error)
      } finally {
        inside--
      }
    },
  })
  const user = ({ headers }: HttpRequest) =>
    headers['x-user'] === undefined ? {} : { user: headers['x-user'] }
  server.routes([
    on('GET', '/who', ({ address, query, params }) => json({ address, query, params })),
    on('GET', '/slow', async () => {
      await new Promise(done => setTimeout(done, 5))
      return json({})
    }),
    on('GET', '/gate', async () => {
      await gate.promise
      return json({})
    }),
    on(
      'GET',
      '/never',
      ({ signal }) => new Promise(done => signal.addEventListener('abort', () => done(json({})))),
    ),
    on('GET', '/large', request => ({
      ...json({}),
      ...user(request),
      content: { kind: 'json', text: large },
    })),
    on('GET', '/stream', request => ({
      status: 200,
      headers: {},
      ...user(request),
      content: { kind: 'events', events: never(request.signal) },
    })),
    on('POST', '/body', async request =>
      json({ bytes: (await request.body(1 << 20, request.headers['x-user'])).length }),
    ),
    on('POST', '/pieces', async request =>
      json({
        parts:
          (await Array.fromAsync(request.bodyStream(1 << 20, request.headers['x-user']))).length >
          0,
      }),
    ),
    on('POST', '/unread', () => json({})),
  ])
  const { port } = await server.listen(
    { ...usual, ...settings },
    { report: () => undefined, refuse },
  )
  served.add(server)
  return { server, port, seen, most: () => most, release: gate.resolve }
}
/** A client that sends a text, and reads only when told to. */
const holding = (port: number, text: string) =>
  new Promise<Socket>(done => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text, () => done(socket)))
    socket.on('error', () => undefined).pause()
  })
const ended = (socket: Socket) =>
  new Promise<string>(done => {
    let text = ''
    socket
      .on('data', part => {
        text += part.toString('latin1').slice(0, 2000)
      })
      .on('close', () => done(text))
      .resume()
  })
const until = async (check: () => boolean | Promise<boolean>, what: string) => {
  for (let i = 0; i < 500; i++) {
    if (await check()) return
    await new Promise(done => setTimeout(done, 10))
  }
  assert.unreachable(what)
}
const get = (path: string, ...headers: string[]) =>
  [`GET ${path} HTTP/1.1`, 'Host: x', ...headers].join('\r\n') + '\r\n\r\n'
const begun = (path: string, ...headers: string[]) =>
  [`POST ${path} HTTP/1.1`, 'Host: x', 'Content-Length: 1000', ...headers].join('\r\n') +
  '\r\n\r\nhalf'

test('a body that comes to a halt is 408, whoever reads it', async () => {
  const { port } = await serve({ silenceMs: 200 })
  for (const path of ['/body', '/pieces']) {
    const heard = await say(port, [begun(path)])
    assert.is(heard.status, 408, path)
    assert.match(heard.body, /REQUEST_TIMEOUT/)
  }
})

test('a head that does not come is 408', async () => {
  const { port } = await serve({ headMs: 200 })
  assert.is((await say(port, ['GET /who HTTP/1.1\r\nHost:'])).status, 408)
})

test('a late answer is 503, and an answer that nobody reads is dropped', async () => {
  const { port, seen } = await serve({ silenceMs: 200 })
  assert.is((await say(port, [get('/never')])).status, 503)
  const reader = await holding(port, get('/large'))
  await until(() => seen.length === 2 && seen[1]!.signal.aborted, 'the connection is ended')
  assert.ok((await ended(reader)).length < large.length)
})

test('an open stream outlives the silence only by its heartbeat; a late one ends it', async () => {
  const { port, server } = await serve({ silenceMs: 300 })
  const reader = await holding(port, get('/stream'))
  await until(() => server.openStreams() === 1, 'it is open')
  await ended(reader)
  await until(() => server.openStreams() === 0, 'it is closed')
})

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

test('a body is asked for when somebody wants it', async () => {
  const { port } = await serve()
  const head = (path: string) =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: ` +
    `100-continue\r\nContent-Length: 2\r\n\r\n`
  assert.match((await say(port, [head('/body'), '{}'])).head, /^HTTP\/1\.1 100 Continue/)
  assert.match((await say(port, [head('/nowhere')])).head, /^HTTP\/1\.1 404/)
  assert.match((await say(port, [head('/unread')])).head, /^HTTP\/1\.1 200/)
})

test('an address has one spelling and no port', async () => {
  const { port } = await serve()
  const said = async (forwarded: string) =>
    (
      JSON.parse(
        (await say(port, [get('/who', 'Connection: close', `X-Forwarded-For: ${forwarded}`)])).body,
      ) as { address: string }
    ).address
  for (const [given, address] of [
    ['1.2.3.4:5678', '1.2.3.4'],
    ['[2001:DB8:0:0::1]:443', '2001:db8::1'],
    ['2001:0db8::0001', '2001:db8::1'],
    ['::ffff:1.2.3.4', '1.2.3.4'],
    ['fe80::1%eth0', 'fe80::1'],
    ['evil, 1.2.3.4', '1.2.3.4'],
    ['unknown', '127.0.0.1'],
    ['1.2.3.4.5', '127.0.0.1'],
    ['', '127.0.0.1'],
  ] as const)
    assert.is(await said(given), address, given)
})

test('what is under way at a stop is answered, what comes later is refused', async () => {
  const { port, server, seen, release } = await serve()
  const socket = await holding(port, get('/gate') + get('/who'))
  await until(() => seen.length === 1, 'the first is inside')
  const stopped = server.close()
  const text = ended(socket)
  release()
  await stopped
  assert.match(await text, /^HTTP\/1\.1 200/)
  assert.is(seen.length, 1, 'the second never came in')
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

test('a flood ends with the idle connections of its address; others are served', async () => {
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

test.after(async () => void (await Promise.all([...served].map(server => server.close()))))
test.run()
