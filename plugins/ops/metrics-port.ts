// Metrics on a port of their own, for networks in which the API's port is public.
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { Introspection } from '#kernel'

type Deps = { host: Introspection; config: { metrics_port?: number }; defer(undo: () => unknown): void }

export async function serveMetrics({ host, config, defer }: Deps): Promise<void> {
  if (config.metrics_port === undefined) return
  const server = createServer((request, response) => {
    if (request.method !== 'GET' || request.url?.split('?')[0] !== '/metrics') return void response.writeHead(404).end()
    host.metrics.metrics().then(text => response.writeHead(200, { 'content-type': host.metrics.contentType }).end(text), () => response.writeHead(500).end())
  })
  server.listen(config.metrics_port)
  defer(() => new Promise(closed => server.close(closed)))
  await once(server, 'listening')
}
