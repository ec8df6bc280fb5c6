// Calls to an OpenSearch cluster: its address, repeated tries, and failures as faults.
import { readFileSync } from 'node:fs'
import { Client, errors } from '@opensearch-project/opensearch'
import { fault, type Fault } from '#contracts/faults.ts'
import type { AdapterContext } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import { wholeOption } from '../../_shared/options.ts'
import { notFound } from '../lib/specs.ts'

export const serviceName = 'The search service'
const timeoutMs = 30_000
const triesMax = 5
const backoffMs = 100
/**
 * After so many calls in a row without an answer, calls are refused for a while. If each waited for
 * its time limit, all searches would stop.
 */
const failuresMax = 5
const pauseMs = 2000

export const urlOptions = {
  tls: 'true or false: encrypted; default true, except for this machine itself.',
  ca: "PEM file of the authority that signed the server's certificate.",
  timeout_ms: `How long one call may take, in milliseconds; default ${timeoutMs}.`,
  shards: 'Primary shards of a new collection; default 1.',
  replicas:
    'Copies of each shard of a new collection; default: 0 where the cluster has one data ' +
    'node, 1 else.',
} as const

export type Asked = {
  readonly query?: Readonly<Record<string, string | number | boolean>>
  readonly body?: object
  /** Lines of JSON. */
  readonly lines?: readonly object[]
  readonly signal?: AbortSignal | undefined
}
/** An error that the service itself answered. Callers tell them apart by type. */
export type Refusal = { readonly status: number; readonly type: string; readonly reason: string }
export type Connection = {
  readonly prefix: string
  /**
   * Returns the answer's body. `refused` gets a status of 400 or more that another try cannot
   * change. Its result is returned, or it throws.
   */
  call<T>(
    method: 'GET' | 'PUT' | 'POST' | 'DELETE',
    path: string,
    asked?: Asked,
    refused?: (refusal: Refusal) => T,
  ): Promise<T>
  /** Waits before the given try, from 1: longer each time, with jitter. */
  pause(attempt: number, signal?: AbortSignal): Promise<void>
  close(): Promise<void>
}

const refusedOption = (field: string, why: string): Fault => fault('INVALID_FIELD', { field, why })
export const unavailable = (why: string, cause?: unknown): Fault =>
  fault('UNAVAILABLE', { what: serviceName, why }, { cause, retryAfterMs: 1000 })

/** Leaves addresses and credentials out. */
export function toFault({ status, type, reason }: Refusal): Fault {
  if (type === 'cluster_block_exception' && reason.includes('flood-stage'))
    return fault('STORAGE_FULL', {}, { retryAfterMs: 1000 })
  if (status === 401 || (status === 403 && type !== 'cluster_block_exception'))
    return unavailable('it refuses the user, or what the user may do')
  return unavailable(`it refused a call (${status} ${type})`)
}
/** Error types of a call whose index was removed during the call. */
const goneTypes = [
  'index_not_found_exception',
  'no_shard_available_action_exception',
  'shard_not_found_exception',
  'index_closed_exception',
]
export const orGone = (refusal: Refusal): never => {
  throw goneTypes.includes(refusal.type) ? notFound() : toFault(refusal)
}
export const refusalOf = (status: number, error: unknown): Refusal => {
  const { type = 'unknown', reason = '' } = (
    typeof error === 'object' && error !== null ? error : {}
  ) as { type?: string; reason?: string }
  return { status, type: String(type), reason: String(reason) }
}
/** The service is overloaded, or one of its nodes is moving: another try may succeed. */
export const isBusy = ({ status, type, reason }: Refusal): boolean =>
  (status === 429 && !reason.includes('flood-stage')) ||
  status === 502 ||
  status === 503 ||
  status === 504 ||
  type === 'es_rejected_execution_exception'

function settingsOf(url: URL, secret: AdapterContext['secret']) {
  if (url.host === '') throw refusedOption('SEARCH_URL', 'is written opensearch://host:9200/prefix')
  if (url.username !== '' || url.password !== '')
    throw refusedOption(
      'SEARCH_URL',
      'must hold no user and no password; they are OPENSEARCH_USERNAME and OPENSEARCH_PASSWORD',
    )
  const prefix = decodeURIComponent(url.pathname.slice(1)) || 'agent-platform'
  if (!/^[a-z0-9][a-z0-9_-]{0,63}$/.test(prefix))
    throw refusedOption(
      'SEARCH_URL',
      'its path is a prefix for the names of indexes: 1 to 64 lower-case letters, digits, ' +
        'hyphens and underscores',
    )
  const tls =
    url.searchParams.get('tls') ??
    String(!/^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(url.hostname))
  if (tls !== 'true' && tls !== 'false') throw refusedOption('tls', 'is true or false')
  const file = url.searchParams.get('ca')
  const username = secret('OPENSEARCH_USERNAME')
  const password = secret('OPENSEARCH_PASSWORD')
  if ((username === undefined) !== (password === undefined))
    throw refusedOption('OPENSEARCH_USERNAME', 'is needed together with OPENSEARCH_PASSWORD')
  try {
    return {
      prefix,
      node: `${tls === 'true' ? 'https' : 'http'}://${url.host}`,
      ca: file === null ? undefined : readFileSync(file),
      auth: username === undefined ? undefined : { username, password: password! },
    }
  } catch (cause) {
    throw fault(
      'INVALID_FIELD',
      { field: 'ca', why: `cannot be read (${(cause as NodeJS.ErrnoException).code})` },
      { cause },
    )
  }
}

export function connect({
  url,
  clock,
  secret,
}: {
  readonly url: URL
  readonly clock: Clock
  readonly secret: AdapterContext['secret']
}): Connection {
  const { prefix, node, ca, auth } = settingsOf(url, secret)
  const requestTimeout = wholeOption(url, 'timeout_ms', timeoutMs, { min: 100, max: 600_000 })
  // This adapter repeats calls itself, by the platform's clock.
  const client = new Client({
    node,
    maxRetries: 0,
    requestTimeout,
    ...(auth ? { auth } : {}),
    ...(ca ? { ssl: { ca } } : {}),
    agent: { keepAlive: true, maxSockets: 32 },
  })
  let failures = 0
  let pausedUntil = -Infinity
  const pause = (attempt: number, signal?: AbortSignal) =>
    clock.sleep(Math.min(5000, backoffMs * 2 ** (attempt - 1)) * (0.5 + clock.random()), signal)

  const once = async <T>(
    method: string,
    path: string,
    { query, body, lines, signal }: Asked,
  ): Promise<T> => {
    signal?.throwIfAborted()
    const request = client.transport.request({
      method,
      path,
      ...(query ? { querystring: query } : {}),
      ...(body ? { body } : {}),
      ...(lines ? { bulkBody: lines.map(line => JSON.stringify(line)).join('\n') + '\n' } : {}),
    } as never)
    const stop = () => request.abort()
    signal?.addEventListener('abort', stop, { once: true })
    try {
      return (await request).body as T
    } finally {
      signal?.removeEventListener('abort', stop)
    }
  }
  return {
    prefix,
    pause,
    async call<T>(
      method: 'GET' | 'PUT' | 'POST' | 'DELETE',
      path: string,
      asked: Asked = {},
      refused: (refusal: Refusal) => T = refusal => {
        throw toFault(refusal)
      },
    ): Promise<T> {
      for (let attempt = 1; ; attempt++) {
        if (clock.monotonic() < pausedUntil) throw unavailable('it does not answer')
        try {
          const answer = await once<T>(method, path, asked)
          failures = 0
          return answer
        } catch (error) {
          asked.signal?.throwIfAborted()
          if (error instanceof errors.ResponseError) {
            failures = 0
            const refusal = refusalOf(
              error.statusCode ?? 500,
              (error.body as { error?: unknown } | undefined)?.error,
            )
            if (!isBusy(refusal)) return refused(refusal)
            if (attempt >= triesMax) throw toFault(refusal)
          } else if (error instanceof errors.OpenSearchClientError) {
            if (++failures >= failuresMax) pausedUntil = clock.monotonic() + pauseMs
            // A call that reached its time limit is not repeated, because its caller has waited
            // long enough.
            if (attempt >= triesMax || error.name === 'TimeoutError')
              throw unavailable(
                error.name === 'TimeoutError'
                  ? 'it did not answer in time'
                  : 'the connection failed',
                error,
              )
          } else throw error
        }
        await pause(attempt, asked.signal)
      }
    },
    close: () => client.close() as unknown as Promise<void>,
  }
}
