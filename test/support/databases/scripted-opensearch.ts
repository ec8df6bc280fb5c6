// A server that plays OpenSearch and the failures that a healthy one does not show.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { systemClock } from '#adapters/clock/system.ts'
import { analysisVersion } from '#adapters/search/analysis/analyser.ts'
import { openSearch } from '#adapters/search/opensearch.ts'

export const ownOrg = '01890000-0000-7000-8000-00000000000a'
type Call = { readonly path: string; readonly body: string }
type Answer = readonly [status: number, body: object]

/** `answer` handles a call first. Calls that it leaves get a healthy server's answer. */
export async function scriptedOpenSearch(
  answer: (call: Call, request: IncomingMessage) => Answer | 'hang up' | undefined,
) {
  const calls: Call[] = []
  const meta = {
    org: ownOrg,
    collection: 'c',
    spec: { languages: ['none'], dimensions: 0, fields: {} },
    analysis: analysisVersion,
  }
  const healthy = ({ path, body }: Call): Answer => {
    if (path.endsWith('_bulk'))
      return [
        200,
        {
          items: body
            .trim()
            .split('\n')
            .filter((_, at) => at % 2 === 0)
            .map(line => ({
              index: {
                _index: 'i-000001',
                _id: (JSON.parse(line) as { index: { _id: string } }).index._id,
                status: 201,
                result: 'created',
              },
            })),
        },
      ]
    if (path === '/_cluster/health') return [200, { number_of_data_nodes: 1 }]
    if (path.endsWith('_search')) return [200, { hits: { total: { value: 1 } } }]
    return [
      200,
      path.endsWith('_refresh')
        ? {}
        : { 'i-000001': { aliases: {}, mappings: { _meta: meta }, settings: { index: {} } } },
    ]
  }
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const call = { path: request.url!.split('?')[0]!, body: await text(request) }
    calls.push(call)
    const told = answer(call, request) ?? healthy(call)
    if (told === 'hang up') return void request.socket.destroy()
    response.writeHead(told[0], { 'content-type': 'application/json' }).end(JSON.stringify(told[1]))
  }
  const server = createServer((request, response) => void handle(request, response)).listen(
    0,
    '127.0.0.1',
  )
  await new Promise(resolve => server.once('listening', resolve))
  const url = new URL(`opensearch://127.0.0.1:${(server.address() as AddressInfo).port}/x`)
  return {
    calls,
    count: (part: string) => calls.filter(({ path }) => path.includes(part)).length,
    open: (more = '') =>
      openSearch({
        url: new URL(url.href + more),
        clock: systemClock(),
        secret: name => ({ OPENSEARCH_USERNAME: 'ann', OPENSEARCH_PASSWORD: 'hidden-word' })[name],
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
export const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => error as Error,
  )
