// restify only routes. Sockets, targets, bodies, errors, CORS, answers and streams are ours. Why:
// docs/decisions/0010-use-restify-for-routing-only.md.
import type { RequestListener, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fault } from '#contracts/faults.ts'
import { defineAdapter, type Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { HttpServer, HttpSettings, Route } from '#ports/http.ts'
import { createAddressOf } from './lib/client-address.ts'
import { handleConnectionErrors } from './lib/connection-errors.ts'
import { applyCors } from './lib/cors.ts'
import { createEventStreams, type EventStreams } from './lib/event-stream.ts'
import { createFloods } from './lib/floods.ts'
import { createPipeline } from './lib/pipeline.ts'
import { readBody } from './lib/read-body.ts'
import { readTarget, type Target } from './lib/request-target.ts'
import {
  closeAfterUnread,
  commonHeaders,
  isEnded,
  send,
  strictTransport,
  type Sending,
} from './lib/send.ts'
import { createShares } from './lib/shares.ts'
import { streamBody } from './lib/stream-body.ts'
import { createRedirect, readTls } from './lib/tls.ts'
import { lazyRequire } from '../_shared/lazy-require.ts'
import { createRouter, type Routed } from './restify/router.ts'
import { createNote, type Request } from './restify/seen.ts'

const { createServer: createPlainServer } = lazyRequire('node:http') as typeof import('node:http')
const { createServer: createTlsServer } = lazyRequire('node:https') as typeof import('node:https')

type Hooks = Parameters<HttpServer['listen']>[1]
/** How long a stop waits for answers that are being written, in milliseconds. */
const lastAnswersMs = 2000
/** How often a stop closes idle connections, in milliseconds. */
const idleMs = 20
/** How often late request heads are looked for, in milliseconds. */
const headCheckMs = 2000

const listenOn = (server: Server, port: number, host: string) =>
  new Promise<void>((resolve, reject) => {
    const failed = (cause: Error) =>
      reject(fault('UNAVAILABLE', { what: `port ${port}`, why: cause.message }, { cause }))
    server.once('error', failed).listen(port, host, () => {
      server.off('error', failed)
      resolve()
    })
  })

/**
 * Refuses a missing Host by our own fault, so Node does not check it. A slow body is bounded by its
 * rate, not by a time limit.
 */
function createServer(
  tls: ReturnType<typeof readTls> | undefined,
  headMs: number,
  listener: RequestListener,
): Server {
  const options = {
    requireHostHeader: false,
    headersTimeout: headMs,
    requestTimeout: 0,
    connectionsCheckingInterval: Math.min(headCheckMs, headMs),
  }
  return tls
    ? createTlsServer({ ...options, ...tls, handshakeTimeout: headMs }, listener)
    : createPlainServer(options, listener)
}

export function createRestify({ clock, log }: { clock: Clock; log: Log }): HttpServer {
  let rows: readonly Route[] = []
  let router: ReturnType<typeof createRouter> | undefined
  let streams: EventStreams | undefined
  let close: (() => Promise<void>) | undefined
  let closing = false

  const open = (settings: HttpSettings, { report, refuse }: Hooks): Server => {
    const tls = settings.tls && readTls(settings.tls)
    const { silenceMs, headMs } = settings
    const addressOf = createAddressOf(settings.trustProxy)
    // Behind a proxy every connection has the proxy's address, so floods are not stopped by
    // address.
    const floods =
      settings.trustProxy > 0
        ? undefined
        : createFloods({ clock, isBusy: socket => pipeline.current(socket) !== undefined })
    const pipeline = createPipeline(socket => (floods ? floods.from(socket) : socket.destroy()))
    const live = (streams = createEventStreams(settings.streams))
    const bodies = createShares(settings.bodies, 'body')
    const unread = createShares(settings.unreadBytes, 'large answer')
    const headers = { ...commonHeaders, ...(tls ? strictTransport : {}) }
    const sendingOf = ({ seen }: Request, user?: string): Sending => ({
      head: seen.head,
      common: { ...headers, 'x-request-id': seen.id },
      subject: { user, address: seen.address },
      streams: live,
      unread,
    })

    /**
     * An error before the first byte is answered as a fault. An error after it ends the connection.
     */
    const deliver = async (
      request: Request,
      response: ServerResponse,
      reply: Parameters<typeof send>[1],
      gone?: AbortSignal,
    ): Promise<void> => {
      closeAfterUnread(request, response)
      if (closing) response.setHeader('connection', 'close')
      try {
        await send(response, reply, sendingOf(request, reply.user))
      } catch (error) {
        if (!response.headersSent && !response.destroyed)
          return deliver(request, response, refuse(error, request.seen), gone)
        if (!gone?.aborted)
          log('warn', 'http.send', {
            request_id: request.seen.id,
            route: request.seen.route,
            error,
          })
        response.destroy()
      }
    }
    const deny = (request: Request, response: ServerResponse, error: unknown) =>
      void deliver(request, response, refuse(error, request.seen))

    const answer = async (
      { route: matched, params }: Routed,
      request: Request,
      response: ServerResponse,
    ): Promise<void> => {
      const gone = new AbortController()
      const { seen } = request
      seen.route = matched.path
      response.once('close', () => {
        if (!response.writableFinished)
          gone.abort(new DOMException('The client went away.', 'AbortError'))
      })
      const bounds = (bytesMax: number, user?: string) => {
        seen.goOn?.()
        return {
          bytesMax,
          bytesPerSecondMin: settings.bodyBytesPerSecondMin,
          enter: () => bodies.take({ user, address: seen.address }),
        }
      }
      const result = await matched.handle({
        id: seen.id,
        method: matched.method,
        route: matched.path,
        params,
        query: seen.target.query,
        headers: request.headers as Record<string, string | undefined>,
        address: seen.address,
        signal: gone.signal,
        body: (bytesMax, user) => readBody(request, bounds(bytesMax, user)),
        bodyStream: (bytesMax, user) => streamBody(request, bounds(bytesMax, user)),
      })
      if (result.content.kind === 'events' && !isEnded(result.content.events))
        seen.begunAt = clock.monotonic()
      await deliver(request, response, result, gone.signal)
    }

    const note = createNote({ clock, addressOf, headers, report })
    const route = (router = createRouter(
      (routed, request, response) => answer(routed, request as Request, response),
      (error, request, response) => deny(request as Request, response, error),
    ))
    route.mount(rows)

    const serve = (
      request: Request,
      response: ServerResponse,
      expectation?: Error | 'continue',
    ): void => {
      let target: Target = { path: '', query: '' }
      let wrong: unknown = expectation instanceof Error ? expectation : undefined
      try {
        target = readTarget(request)
      } catch (error) {
        wrong = error
      }
      note(request, response, target)
      if (wrong) return deny(request, response, wrong)
      if (closing) return deny(request, response, fault('STOPPING'))
      if (expectation === 'continue') {
        let said = false
        request.seen.goOn = () => {
          if (!said && !response.headersSent && !response.destroyed) response.writeContinue()
          said = true
        }
      }
      if (request.seen.head) request.method = 'GET'
      if (!applyCors(request, response, settings.corsOrigins))
        route.dispatch(request, response, target)
    }
    const door =
      (expectation?: Error | 'continue'): RequestListener =>
      (request, response) =>
        pipeline.enter({ request, response }, () =>
          serve(request as Request, response, expectation),
        )

    const server = createServer(tls, headMs, door())
    floods?.watch(server, tls ? 'secureConnection' : 'connection')
    server.setTimeout(silenceMs)
    server
      .on('checkContinue', door('continue'))
      .on('checkExpectation', door(fault('EXPECTATION_FAILED')))
    server.on('error', (error: unknown) => log('warn', 'http.server', { error }))
    handleConnectionErrors(server, {
      pipeline,
      headMs,
      silenceMs,
      headers,
      refuse(refusal) {
        const id = clock.id()
        report({ method: 'unknown', route: 'unknown', status: refusal.status, seconds: 0, id })
        return { answer: refuse(refusal, { id, route: 'unknown' }), id }
      },
    })
    return server
  }

  return {
    routes(next) {
      rows = next
      router?.mount(next)
    },
    async listen(settings, hooks) {
      closing = false
      const inner = open(settings, hooks)
      await listenOn(inner, settings.port, settings.host)
      const { port } = inner.address() as AddressInfo
      let redirect: Server | undefined
      close = async () => {
        closing = true
        redirect?.close()
        redirect?.closeAllConnections()
        streams?.close()
        const closed = new Promise<void>(resolve => inner.close(() => resolve()))
        // Clients keep connections alive after their last answer. A stop would wait for these until
        // `enough`.
        const idle = setInterval(() => inner.closeIdleConnections(), idleMs)
        const enough = setTimeout(() => inner.closeAllConnections(), lastAnswersMs)
        await closed
        clearInterval(idle)
        clearTimeout(enough)
      }
      if (settings.tls?.redirectPort !== undefined) {
        const floods = createFloods({ clock, isBusy: () => false })
        redirect = createRedirect({
          cert: readTls(settings.tls).cert,
          host: settings.tls.redirectHost,
          target: () => port,
          silenceMs: settings.silenceMs,
          onError: error => log('warn', 'http.redirect', { error }),
          onFlood: socket => (settings.trustProxy > 0 ? socket.destroy() : floods.from(socket)),
        })
        if (settings.trustProxy === 0) floods.watch(redirect, 'connection')
        await listenOn(redirect, settings.tls.redirectPort, settings.host)
      }
      return { port }
    },
    openStreams: () => streams?.open() ?? 0,
    ping: async () => undefined,
    async close() {
      const end = close
      close = undefined
      if (end) await end()
      else streams?.close()
    },
  }
}

export default defineAdapter<HttpServer>({
  port: 'http',
  scheme: 'restify',
  open: async opening => createRestify(opening),
})
