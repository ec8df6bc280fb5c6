// Who may read the metrics, and the port of their own: for networks in which the API's port is
// public.
import { timingSafeEqual } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { fault, type KernelInfo } from '#kernel'
import type { Clock } from '#ports/clock.ts'

type Config = { metrics_port?: number; metrics_host?: string; host: string; metrics_token?: string }
type Deps = {
  host: KernelInfo
  clock: Clock
  config: Config
  signal: AbortSignal
  defer(undo: () => unknown): void
}
/**
 * How often a port is asked for that the generation before holds until it is undone, in
 * milliseconds.
 */
const againMs = 50
/** A scrape takes milliseconds; a connection that says nothing for longer is ended. */
const silenceMs = 15_000

/** CREDENTIAL_REFUSED where a token is asked for and another one, or none, is sent. */
export function checkToken(
  { metrics_token: token }: Config,
  authorization: string | undefined,
): void {
  if (token === undefined) return
  const [given, wanted] = [Buffer.from(authorization ?? ''), Buffer.from(`Bearer ${token}`)]
  if (given.length !== wanted.length || !timingSafeEqual(given, wanted))
    throw fault('CREDENTIAL_REFUSED', { kind: 'metrics' })
}

async function expose(
  { host, config }: Deps,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const answer = (status: number, text = '', mime = 'text/plain') => {
    response.writeHead(status, {
      'content-type': mime,
      'cache-control': 'private, no-store',
      'x-content-type-options': 'nosniff',
      ...(status === 401 ? { 'www-authenticate': 'Bearer' } : {}),
    })
    response.end(text)
  }
  if (request.method !== 'GET' || request.url?.split('?')[0] !== '/metrics') return answer(404)
  try {
    checkToken(config, request.headers.authorization)
    const { text, mime } = await host.exposition()
    answer(200, text, mime)
  } catch (error) {
    answer((error as { status?: number }).status ?? 500)
  }
}

export async function serveMetrics(deps: Deps): Promise<void> {
  const { host, clock, config, signal, defer } = deps
  if (config.metrics_port === undefined) return
  const { createServer } = await import('node:http')
  const server = createServer((request, response) => void expose(deps, request, response))
  server
    .on('connection', socket => socket.on('error', () => socket.destroy()))
    .setTimeout(silenceMs)
  let failed: (error: Error) => void = () => undefined
  // For good: an error after the start is one connection's, and ends nothing.
  server.on('error', error => failed(error))
  const listen = () =>
    new Promise<void>((done, refused) => {
      failed = refused
      server.listen(config.metrics_port, config.metrics_host ?? config.host, done)
    })
  const takeOver = async () => {
    while (
      !signal.aborted &&
      !(await listen().then(
        () => true,
        () => false,
      ))
    )
      await clock.sleep(againMs, signal).catch(() => undefined)
  }
  defer(
    () =>
      new Promise(closed => {
        server.close(closed)
        server.closeAllConnections()
      }),
  )
  if (host.plugins().some(({ name }) => name === 'ops')) void takeOver()
  else await listen()
}
