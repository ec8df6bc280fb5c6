// Metrics on a port of their own, for networks in which the API's port is public.
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { Introspection } from '#kernel'

type Deps = { host: Introspection; config: { metrics_port?: number }; defer(undo: () => unknown): void }

export async function serveMetrics({ host, config, defer }: Deps): Promise<void> {
  if (config.metrics_port === undefined) return
  const server = createServer((request, response) => {
    const answer = (status: number, text = '') => {
      response.writeHead(status, { 'content-type': host.metrics.contentType })
      response.end(text)
    }
    if (request.method !== 'GET' || request.url?.split('?')[0] !== '/metrics') answer(404)
    else host.metrics.metrics().then(text => answer(200, text), () => answer(500))
  })
  server.listen(config.metrics_port)
  defer(() => new Promise(closed => server.close(closed)))
  await once(server, 'listening')
}
