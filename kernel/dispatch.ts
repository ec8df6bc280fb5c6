// One request's walk: who calls, how often, with what; then the handler; then the answer, once everything behind it is on disk.
import { isReply, type Bytes, type Caller, type Operation, type OperationKey, type WireEvents } from '#contracts/contract.ts'
import { fault, isFault, type Fault } from '#contracts/faults.ts'
import { faultsOf, isSchema, successOf } from '#contracts/statuses.ts'
import type { Log } from '#ports/adapter.ts'
import type { HttpAnswer, HttpRequest } from '#ports/http.ts'
import type { RateLimiter } from '#ports/limits.ts'
import { bodyBytesMax, parseJson, requireJson } from './body.ts'
import type { Instance } from './instance.ts'
import type { Authenticator } from './plugin.ts'
import { createValidator, type Check } from './validate.ts'

export type Endpoint = {
  readonly key: OperationKey
  readonly path: string
  readonly operation: Operation
  readonly instance: Instance
  readonly handler: (call: never) => unknown
  readonly checks: { readonly params?: Check; readonly query?: Check; readonly headers?: Check; readonly body?: Check; readonly reply?: Check }
}
type Around = {
  readonly authenticators: () => readonly Authenticator[]
  readonly limiter: RateLimiter
  readonly durable: () => Promise<unknown>
  readonly log: Log
  /** Tests and development: replies and faults are held against the contract. */
  readonly strict: boolean
}

export const mounts = { v1: '/api/v1', root: '' } as const

/** Compiles an instance's rows; one Ajv for all of them, gone with the generation. */
export function endpointsOf(instance: Instance, strict: boolean): Endpoint[] {
  const validator = createValidator(), { contract = {}, routes = {}, mount = 'v1' } = instance.plugin
  const object = (properties: Record<string, unknown>, required: string[]) => ({ type: 'object', properties, required })
  return Object.entries(contract).map(([key, operation]) => ({
    key: key as OperationKey, operation, instance, handler: routes[key]!,
    path: mounts[mount] + key.slice(key.indexOf(' ') + 1),
    checks: {
      ...(operation.params && { params: validator.check('path', object(operation.params, Object.keys(operation.params))) }),
      ...(operation.query && { query: validator.check('query', { ...operation.query, additionalProperties: false }) }),
      ...(operation.headers && { headers: validator.check('headers', object(operation.headers, [])) }),
      ...(operation.body && { body: validator.check('body', operation.body) }),
      ...(strict && isSchema(operation.reply) && { reply: validator.check('reply', operation.reply) }),
    },
  }))
}

function parseQuery(raw: string): Record<string, string> {
  const out: Record<string, string> = {}
  for (const part of raw ? raw.split('&') : []) {
    const at = part.indexOf('='), [name, value] = at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)]
    try {
      out[decodeURIComponent(name.replaceAll('+', ' '))] = decodeURIComponent(value.replaceAll('+', ' '))
    } catch (cause) {
      throw fault('MALFORMED_TEXT', { field: 'query' }, { cause })
    }
  }
  return out
}

/** `Last-Event-ID` beats `?after`: an EventSource that reconnects repeats the old URL. */
function cursorOf(request: HttpRequest, query: Record<string, unknown>): number {
  const header = request.headers['last-event-id']
  const [field, text] = header !== undefined && header !== '' ? ['Last-Event-ID', header] : ['after', String(query['after'] ?? '0')]
  if (!/^\d{1,15}$/.test(text)) throw fault('CURSOR_INVALID', { field, why: 'must be the seq of an event' })
  return Number(text)
}

async function readBody(request: HttpRequest, { operation, checks }: Endpoint): Promise<unknown> {
  if (!checks.body) return undefined
  const bytes = await request.body(operation.bodyMaxBytes ?? bodyBytesMax)
  if (bytes.length === 0) {
    if (operation.bodyOptional) return undefined
    throw fault('INVALID_FIELD', { field: 'body', why: 'is required' })
  }
  requireJson(request.headers['content-type'])
  return checks.body(parseJson(bytes))
}

export function createDispatcher({ authenticators, limiter, durable, log, strict }: Around) {
  const authenticate = async (kind: string, request: HttpRequest): Promise<Caller | undefined> => {
    if (kind === 'public') return undefined
    for (const each of authenticators()) {
      const caller = each.kind === kind ? await each.authenticate(request.headers) : undefined
      if (caller) return caller
    }
    throw fault('UNAUTHENTICATED')
  }
  const limit = async ({ operation, instance }: Endpoint, subject: { user: string | undefined; address: string }) => {
    if (!operation.limit) return
    const { name, by } = operation.limit
    const wait = await limiter.take(name, subject[by] ?? subject.address, instance.rates[name]!)
    if (wait > 0) throw fault('RATE_LIMITED', { limit: name, seconds: Math.ceil(wait / 1000) }, { retryAfterMs: wait })
  }
  const answer = async ({ operation, checks }: Endpoint, result: unknown): Promise<HttpAnswer> => {
    const { value, status = successOf(operation), headers = {} } = isReply(result) ? result : { value: result }
    const { reply } = operation
    if (reply === 'sse') return { status, headers, content: { kind: 'events', events: value as WireEvents } }
    if (!isSchema(reply) && reply !== 'none') return { status, headers, content: { kind: 'bytes', bytes: value as Bytes } }
    await durable()
    if (reply === 'none' || status === 204) return { status, headers, content: { kind: 'none' } }
    checks.reply?.(value)
    return { status, headers, content: { kind: 'json', text: JSON.stringify(value) } }
  }
  const call = async (endpoint: Endpoint, request: HttpRequest): Promise<HttpAnswer> => {
    const { operation, checks, instance, handler } = endpoint
    const caller = await authenticate(operation.auth ?? 'user', request)
    await limit(endpoint, { user: caller?.userId, address: request.address })
    const params = checks.params?.(request.params) ?? {}
    const raw = parseQuery(request.query)
    const after = operation.reply === 'sse' ? cursorOf(request, raw) : 0
    const query = checks.query?.(raw) ?? {}
    checks.headers?.({ ...request.headers })
    const body = await readBody(request, endpoint)
    return answer(endpoint, await instance.within({ caller, params, query, headers: request.headers, body, after, address: request.address, signal: request.signal }, handler))
  }

  /** Every error as `{ detail, code, request_id }`; what was not foreseen is logged whole and told as INTERNAL. */
  const refuse = (error: unknown, { id, route }: { id: string; route: string }): HttpAnswer => {
    if (!isFault(error)) log('error', 'request.failed', { id, route, error })
    const known: Fault = isFault(error) ? error : fault('INTERNAL')
    const headers: Record<string, string> = known.retryAfterMs === undefined ? {} : { 'retry-after': String(Math.max(1, Math.ceil(known.retryAfterMs / 1000))) }
    if (known.status === 401) headers['www-authenticate'] = 'Bearer'
    return { status: known.status, headers, content: { kind: 'json', text: JSON.stringify({ detail: known.message, code: known.code, request_id: id }) } }
  }

  return {
    refuse,
    async handle(endpoint: Endpoint | undefined, request: HttpRequest): Promise<HttpAnswer> {
      try {
        if (!endpoint) throw fault('ROUTE_NOT_FOUND', { method: request.method, path: request.route })
        return await call(endpoint, request)
      } catch (error) {
        if (strict && endpoint && isFault(error) && !faultsOf(endpoint.operation).includes(error.code)) return refuse(new Error(`${endpoint.key} answered ${error.code}, which its contract does not name.`, { cause: error }), request)
        return refuse(error, request)
      }
    },
  }
}
export type Dispatcher = ReturnType<typeof createDispatcher>
