// An OpenSearch for the tests that harm it, and a client beside the product, whose acknowledged
// writes are asked for afterwards.
import { pause } from '../durability/client.ts'
import { openSearchUrl } from '../support/databases/opensearch.ts'
import { startOpenSearch } from '../servers/opensearch.ts'
import type { Started } from '../servers/server.ts'

/** One of this file's own, where the one that is given is not the user's. */
export async function harmlessServer(): Promise<Started> {
  if (openSearchUrl === undefined) return { why: 'OPENSEARCH_URL is not set' }
  if (!process.env['TEST_SERVERS']?.split(' ').includes('OPENSEARCH_URL'))
    return { why: 'OPENSEARCH_URL names a server that is not ours to harm' }
  return startOpenSearch()
}

/** Between two writes, in milliseconds. */
const controlMs = 50

/**
 * Writes one document after the other, each on disk when it is answered, until it is told to stop;
 * answers which of those that were acknowledged are not there.
 */
export async function controlOn(port: number) {
  const call = async <T>(
    method: string,
    path: string,
    body?: object,
    timeoutMs = 2000,
  ): Promise<T> => {
    const response = await fetch(`http://127.0.0.1:${port}/${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      signal: AbortSignal.timeout(timeoutMs),
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
    if (!response.ok) throw new Error(`${response.status}`)
    return (await response.json()) as T
  }
  const name = `control-${crypto.randomUUID()}`
  await call(
    'PUT',
    name,
    { settings: { index: { number_of_replicas: 0, 'translog.durability': 'request' } } },
    30_000,
  )
  const acknowledged: string[] = []
  let stopped = false
  const writing = (async () => {
    for (let n = 0; !stopped; n++) {
      await call('PUT', `${name}/_doc/${n}`, { n }).then(
        () => acknowledged.push(String(n)),
        () => undefined,
      )
      await pause(controlMs)
    }
  })()
  return async (): Promise<{ readonly acknowledged: number; readonly lost: readonly string[] }> => {
    stopped = true
    await writing
    const { docs } = await call<{ docs: { _id: string; found: boolean }[] }>(
      'POST',
      `${name}/_mget`,
      { ids: acknowledged },
      30_000,
    )
    return {
      acknowledged: acknowledged.length,
      lost: docs.filter(({ found }) => !found).map(({ _id }) => _id),
    }
  }
}
