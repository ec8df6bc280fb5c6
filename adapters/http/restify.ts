// restify routes, answers 404 and 405, and closes. Bodies, errors, CORS and streams are ours: see DECISIONS.md.
import { readFileSync } from 'node:fs'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { createSecureContext } from 'node:tls'
import restify from 'restify'
import type { WireEvent, WireEvents } from '#contracts/contract.ts'
import { fault } from '#contracts/faults.ts'
import { defineAdapter, type Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { HttpAnswer, HttpServer, HttpSettings, Route } from '#ports/http.ts'
import { applyCors } from '../_shared/http/cors.ts'
import { createEventStreams, eventStreamHeaders, type EventStreams } from '../_shared/http/event-stream.ts'
import { readBody } from '../_shared/http/read-body.ts'
import { streamBody } from '../_shared/http/stream-body.ts'
import { required } from '../_shared/required.ts'

const { createServer: createPlainServer } = required('node:http') as typeof import('node:http')

type Hooks = Parameters<HttpServer['listen']>[1]
type Seen = { id: string; route: string; startedAt: number; /** Of a stream: when it began. */ begunAt?: number; head: boolean }
type Request = IncomingMessage & { params: Record<string, string>; seen: Seen }
const silent = { trace() {}, debug() {}, info() {}, warn() {}, error() {}, fatal() {}, child: () => silent }
/** How long a stop waits for answers that are being written, in milliseconds. */
const lastAnswersMs = 2000
/** How often a stop lets go of connections on which nothing is under way any more. */
const idleMs = 20

const isEnded = (events: WireEvents): events is readonly WireEvent[] => Array.isArray(events)

/** A path whose escapes are no UTF-8 would be taken for one that is not there. */
function isReadable(url: string): boolean {
  if (!url.includes('%')) return true
  try {
    return decodeURIComponent(url.split('?', 1)[0]!) !== ''
  } catch {
    return false
  }
}

/** The address so many hops from the right of X-Forwarded-For, else the peer's. */
function addressOf(request: IncomingMessage, hops: number): string {
  const chain = String(request.headers['x-forwarded-for'] ?? '').split(',').map(part => part.trim()).filter(Boolean)
  return (hops > 0 && chain.at(-hops)) || (request.socket.remoteAddress ?? '')
}

async function send(response: ServerResponse, { status, headers, content }: HttpAnswer, { head }: Seen, streams: EventStreams): Promise<void> {
  if (response.destroyed) return
  // restify changes node's ServerResponse for the whole process: its writeHead answers nothing, so that it cannot be chained.
  switch (content.kind) {
    case 'none':
      response.writeHead(status, headers)
      response.end()
      return
    case 'json': {
      // As a string, so that node sends head and body in one write.
      response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', 'content-length': Buffer.byteLength(content.text), 'cache-control': 'no-store', ...headers })
      response.end(content.text)
      return
    }
    case 'events':
      response.writeHead(status, { ...eventStreamHeaders, ...headers })
      if (head) response.end()
      else if (isEnded(content.events)) streams.sendAll(response, content.events)
      else await streams.send(response, content.events)
      return
    case 'bytes': {
      const { stream, mime, filename } = content.bytes
      const disposition = filename === undefined ? {} : { 'content-disposition': `attachment; filename*=UTF-8''${encodeURIComponent(filename).replace(/['()*]/g, each => `%${each.charCodeAt(0).toString(16)}`)}` }
      response.writeHead(status, { 'content-type': mime, 'x-content-type-options': 'nosniff', ...disposition, ...headers })
      if (head) response.end()
      else if (stream instanceof Uint8Array) response.end(stream)
      else await pipeline(stream, response)
    }
  }
}

/** INVALID_FIELD names the setting; that the two belong together is known before the first client comes. */
function readTls({ cert, key }: { readonly cert: string; readonly key: string }) {
  const read = (field: string, path: string) => {
    try {
      return readFileSync(path)
    } catch (cause) {
      throw fault('INVALID_FIELD', { field, why: `${path} cannot be read (${(cause as NodeJS.ErrnoException).code})` }, { cause })
    }
  }
  const pair = { cert: read('TLS_CERT', cert), key: read('TLS_KEY', key), minVersion: 'TLSv1.2' as const }
  try {
    createSecureContext(pair)
  } catch (cause) {
    throw fault('INVALID_FIELD', { field: 'TLS_CERT', why: 'and TLS_KEY must be a certificate and its own key, in PEM' }, { cause })
  }
  return pair
}

function createRoutes(server: restify.Server, answer: (route: Route, request: Request, response: ServerResponse) => Promise<void>) {
  const mounted = new Map<string, { route: Route; name: string }>()
  const verbs = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'del' } as const
  /** Only what changed is touched: a route's handler is looked up at each call. */
  return (rows: readonly Route[]) => {
    const wanted = new Map(rows.map(row => [`${row.method} ${row.path}`, row]))
    for (const [key, { name }] of mounted) if (!wanted.has(key)) {
      server.rm(name)
      mounted.delete(key)
    }
    for (const [key, route] of wanted) {
      const known = mounted.get(key)
      if (known) known.route = route
      else {
        // restify gives another name where two would have the same; by that one alone a route is removed.
        const entry = { route, name: '' }, path = route.path.replace(/\{(\w+)\}/g, ':$1')
        entry.name = server[verbs[route.method]]({ path, name: key.replace(/\W+/g, '-').toLowerCase() }, async (request: unknown, response: unknown) => answer(entry.route, request as Request, response as ServerResponse)) as unknown as string
        mounted.set(key, entry)
      }
    }
  }
}

/** Plain HTTP only tells where the encrypted door is. */
async function openRedirect(port: number, host: string, target: () => number): Promise<Server> {
  const server = createPlainServer((request, response) => {
    const name = String(request.headers.host ?? 'localhost').replace(/:\d+$/, '')
    response.writeHead(308, { location: `https://${name}${target() === 443 ? '' : `:${target()}`}${request.url ?? '/'}` })
    response.end()
  })
  await listenOn(server, port, host)
  return server
}
const listenOn = (server: Server, port: number, host: string) => new Promise<void>((resolve, reject) => {
  server.once('error', (cause: Error) => reject(fault('UNAVAILABLE', { what: `port ${port}`, why: cause.message }, { cause })))
  server.listen(port, host, () => resolve())
})

export function createRestify({ clock, log }: { clock: Clock; log: Log }): HttpServer {
  let rows: readonly Route[] = [], apply: ((rows: readonly Route[]) => void) | undefined, close: (() => Promise<void>) | undefined
  const streams = createEventStreams()

  const open = (settings: HttpSettings, { report, refuse }: Hooks) => {
    const tls = settings.tls && readTls(settings.tls)
    // The type definitions stand at an older version, which had another logger.
    const server = restify.createServer({ name: '', log: silent as never, maxParamLength: 4096, noWriteContinue: false, ...(tls ? { httpsServerOptions: tls } : {}) } as restify.ServerOptions)
    const inner = server.server as Server
    // restify hands on what its server emits, and an error that nobody listens to ends the process. Before it listens, listenOn tells.
    server.on('error', (error: unknown) => { if (inner.listening) log('warn', 'http.server', { error }) })
    inner.requestTimeout = 0
    const note = (request: Request, response: ServerResponse) => {
      const given = request.headers['x-request-id'], head = request.method === 'HEAD'
      const seen: Seen = { id: typeof given === 'string' && /^[\w.-]{1,64}$/.test(given) ? given : clock.id(), route: 'unknown', startedAt: clock.monotonic(), head }
      request.seen = seen
      response.setHeader('x-request-id', seen.id)
      response.once('close', () => report({ method: request.method ?? '', route: seen.route, status: response.statusCode, seconds: ((seen.begunAt ?? clock.monotonic()) - seen.startedAt) / 1000, id: seen.id }))
    }
    server.pre((request: unknown, response: unknown, next: (go?: false) => void) => {
      const [req, res] = [request as Request, response as ServerResponse]
      note(req, res)
      if (req.seen.head) req.method = 'GET'
      if (!isReadable(req.url ?? '')) {
        void send(res, refuse(fault('MALFORMED_TEXT', { field: 'path' }), req.seen), req.seen, streams)
        return next(false)
      }
      next(applyCors(req, res, settings.corsOrigins) ? false : undefined)
    })
    // Not calling `done` keeps restify from writing its own words over ours.
    server.on('restifyError', (request: Request, response: ServerResponse, error: { statusCode?: number; message: string }) => {
      if (response.headersSent) return
      const where = { method: request.method ?? '', path: (request.url ?? '').split('?')[0]!.slice(0, 200) }
      const known = error.statusCode === 404 ? fault('ROUTE_NOT_FOUND', where) : error.statusCode === 405 ? fault('METHOD_NOT_ALLOWED', where) : error.statusCode === 400 ? fault('MALFORMED_REQUEST', { why: 'the path cannot be read' }) : error
      void send(response, refuse(known, request.seen), request.seen, streams)
    })
    const answer = async (route: Route, request: Request, response: ServerResponse) => {
      const gone = new AbortController(), { seen } = request
      seen.route = route.path
      response.once('close', () => { if (!response.writableFinished) gone.abort(new DOMException('The client went away.', 'AbortError')) })
      const bounds = (bytesMax: number) => ({ bytesMax, bytesPerSecondMin: settings.bodyBytesPerSecondMin })
      const result = await route.handle({
        id: seen.id, method: route.method, route: route.path, params: request.params, query: (request.url ?? '').split('?')[1] ?? '', headers: request.headers as Record<string, string | undefined>,
        address: addressOf(request, settings.trustProxy), signal: gone.signal,
        body: bytesMax => readBody(request, bounds(bytesMax)), bodyStream: bytesMax => streamBody(request, bounds(bytesMax)),
      })
      if (result.content.kind === 'events') seen.begunAt = clock.monotonic()
      const full = result.content.kind === 'events' && !isEnded(result.content.events) && streams.open() >= settings.streamsMax
      // What is left of an unread body would be taken for the next request.
      if (!request.complete) response.setHeader('connection', 'close')
      await send(response, full ? refuse(fault('UNAVAILABLE', { what: 'another event stream', why: 'this server holds as many as it may' }), seen) : result, seen, streams).catch((error: unknown) => {
        if (!gone.signal.aborted) log('warn', 'http.send', { request_id: seen.id, route: seen.route, error })
        response.destroy()
      })
    }
    apply = createRoutes(server, answer)
    apply(rows)
    return inner
  }

  return {
    routes(next) {
      rows = next
      apply?.(next)
    },
    async listen(settings, hooks) {
      const inner = open(settings, hooks)
      await listenOn(inner, settings.port, settings.host)
      const { port } = inner.address() as AddressInfo
      let redirect: Server | undefined
      close = async () => {
        redirect?.close()
        redirect?.closeAllConnections()
        streams.close()
        const closed = new Promise<void>(resolve => inner.close(() => resolve()))
        // A connection whose answer or stream has just ended is kept alive by its client, and would be waited for to the last.
        const idle = setInterval(() => inner.closeIdleConnections(), idleMs), enough = setTimeout(() => inner.closeAllConnections(), lastAnswersMs)
        await closed
        clearInterval(idle)
        clearTimeout(enough)
      }
      if (settings.tls?.redirectPort !== undefined) redirect = await openRedirect(settings.tls.redirectPort, settings.host, () => port)
      return { port }
    },
    openStreams: () => streams.open(),
    ping: async () => undefined,
    async close() {
      const end = close
      close = undefined
      if (end) await end()
      else streams.close()
    },
  }
}

export default defineAdapter<HttpServer>({ port: 'http', scheme: 'restify', open: async opening => createRestify(opening) })
