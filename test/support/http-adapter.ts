// The adapter of HTTP with a few routes, and clients that hold their connections.
import { connect, type Socket } from 'node:net'
import * as assert from 'uvu/assert'
import { systemClock } from '#adapters/clock/system.ts'
import { createRestify } from '#adapters/http/restify.ts'
import { isFault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import type { HttpAnswer, HttpRequest, HttpServer, HttpSettings, Route } from '#ports/http.ts'

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
export const large = 'x'.repeat(4 << 20)
const never = (signal: AbortSignal) =>
  (async function* () {
    await new Promise(done => signal.addEventListener('abort', done))
  })()

/** Servers that end with the tests of one file. */
export function serving(test: { after(close: () => Promise<void>): void }) {
  const served = new Set<HttpServer>()
  test.after(async () => void (await Promise.all([...served].map(server => server.close()))))
  return async (settings: Partial<HttpSettings> = {}, time = systemClock()) => {
    const one = await serve(settings, time)
    served.add(one.server)
    return one
  }
}
async function serve(settings: Partial<HttpSettings>, time: Clock) {
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
  return { server, port, seen, most: () => most, release: gate.resolve }
}
/** A client that sends a text, and reads only when told to. */
export const holding = (port: number, text: string) =>
  new Promise<Socket>(done => {
    const socket = connect(port, '127.0.0.1', () => socket.write(text, () => done(socket)))
    socket.on('error', () => undefined).pause()
  })
export const ended = (socket: Socket) =>
  new Promise<string>(done => {
    let text = ''
    socket
      .on('data', part => {
        text += part.toString('latin1').slice(0, 2000)
      })
      .on('close', () => done(text))
      .resume()
  })
export const until = async (check: () => boolean | Promise<boolean>, what: string) => {
  for (let i = 0; i < 500; i++) {
    if (await check()) return
    await new Promise(done => setTimeout(done, 10))
  }
  assert.unreachable(what)
}
export const get = (path: string, ...headers: string[]) =>
  [`GET ${path} HTTP/1.1`, 'Host: x', ...headers].join('\r\n') + '\r\n\r\n'
export const begun = (path: string, ...headers: string[]) =>
  [`POST ${path} HTTP/1.1`, 'Host: x', 'Content-Length: 1000', ...headers].join('\r\n') +
  '\r\n\r\nhalf'
