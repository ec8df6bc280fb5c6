// Receives spans as OTLP over HTTP, in JSON, and keeps them.
import { once } from 'node:events'
import { createServer } from 'node:http'

type Value = {
  stringValue?: string
  intValue?: number | string
  doubleValue?: number
  boolValue?: boolean
  arrayValue?: { values: Value[] }
}
type Wire = {
  traceId: string
  spanId: string
  parentSpanId?: string
  name: string
  kind: number
  status: { code?: number }
  attributes: { key: string; value: Value }[]
}
export type CollectedSpan = Omit<Wire, 'attributes'> & { attributes: Record<string, unknown> }

const plain = ({ stringValue, boolValue, arrayValue, intValue, doubleValue }: Value): unknown =>
  stringValue ??
  boolValue ??
  (arrayValue ? arrayValue.values.map(plain) : Number(intValue ?? doubleValue))

export async function startCollector(status = 200) {
  const spans: CollectedSpan[] = []
  const bodies: string[] = []
  const paths = new Set<string>()
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const part of request) body += String(part)
    bodies.push(body)
    paths.add(request.url!)
    const { resourceSpans } = JSON.parse(body) as {
      resourceSpans: { scopeSpans: { spans: Wire[] }[] }[]
    }
    for (const { scopeSpans } of resourceSpans)
      for (const { spans: some } of scopeSpans)
        for (const span of some)
          spans.push({
            ...span,
            attributes: Object.fromEntries(
              span.attributes.map(({ key, value }) => [key, plain(value)]),
            ),
          })
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end('{}')
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    spans,
    bodies,
    paths,
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
