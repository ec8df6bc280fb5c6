// Metrics on a port of their own, for networks in which the API's port is public.
import type { Introspection } from '#kernel'
import type { Clock } from '#ports/clock.ts'

type Deps = { host: Introspection; clock: Clock; config: { metrics_port?: number }; signal: AbortSignal; defer(undo: () => unknown): void }
/** How often a port is asked for that the generation before holds until it is undone, in milliseconds. */
const againMs = 50

export async function serveMetrics({ host, clock, config, signal, defer }: Deps): Promise<void> {
  if (config.metrics_port === undefined) return
  const { createServer } = await import('node:http'), server = createServer((request, response) => {
    const answer = (status: number, text = '', mime = 'text/plain') => {
      response.writeHead(status, { 'content-type': mime })
      response.end(text)
    }
    if (request.method !== 'GET' || request.url?.split('?')[0] !== '/metrics') answer(404)
    else host.exposition().then(({ text, mime }) => answer(200, text, mime), () => answer(500))
  })
  const listen = () => new Promise<void>((done, failed) => {
    server.once('error', failed).listen(config.metrics_port, () => {
      server.off('error', failed)
      done()
    })
  })
  const takeOver = async () => {
    while (!signal.aborted && !(await listen().then(() => true, () => false))) await clock.sleep(againMs, signal).catch(() => undefined)
  }
  defer(() => new Promise(closed => server.close(closed)))
  if (host.plugins().some(({ name }) => name === 'ops')) void takeOver()
  else await listen()
}
