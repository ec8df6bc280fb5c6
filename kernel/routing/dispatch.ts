// Dispatches a request: authenticates, applies rate limits, checks the values, and calls the
// handler. The answer leaves when everything behind it is on disk.
import { isReply, type Bytes, type WireEvents } from '#contracts/contract.ts'
import { fault, isFault, type Fault } from '#contracts/faults.ts'
import { faultsOf, isSchema, successOf } from '#contracts/statuses.ts'
import type { Log } from '#ports/adapter.ts'
import type { HttpAnswer, HttpRequest } from '#ports/http.ts'
import type { Tracer } from '#ports/traces.ts'
import type { Engines } from '../engines.ts'
import type { Endpoint } from './endpoint.ts'
import { createAccessControl, type AccessParts } from './access-control.ts'
import { cursorOf, parseQuery, readBody } from './request.ts'

type Around = AccessParts & {
  readonly engines: Pick<Engines, 'durable' | 'epoch'>
  readonly log: Log
  readonly traces: Tracer
  /** For tests and development: checks replies and faults against the contract. */
  readonly strict: boolean
}

const isOver = (events: WireEvents) => Array.isArray(events) && events.length === 0

/** `epoch` was read before the handler ran. If it changed, the handler's writes may be lost. */
async function answerOf(
  { operation, checks }: Endpoint,
  result: unknown,
  engines: Around['engines'],
  epoch: number,
  guard: (events: WireEvents) => WireEvents,
): Promise<HttpAnswer> {
  const {
    value,
    status = successOf(operation),
    headers = {},
  } = isReply(result) ? result : { value: result }
  const { reply } = operation
  // An EventSource reconnects after every stream, unless it gets 204 (WHATWG HTML, section 9.2.3).
  if (reply === 'sse')
    return isOver(value as WireEvents)
      ? { status: 204, headers, content: { kind: 'none' } }
      : { status, headers, content: { kind: 'events', events: guard(value as WireEvents) } }
  if (status === 304) return { status, headers, content: { kind: 'none' } }
  if (!isSchema(reply) && reply !== 'none')
    return { status, headers, content: { kind: 'bytes', bytes: value as Bytes } }
  // Operations about the process itself must answer while the storage is away.
  if (!operation.everywhere) await engines.durable()
  if (!operation.everywhere && engines.epoch() !== epoch) throw fault('STORAGE_FULL')
  if (reply === 'none' || status === 204) return { status, headers, content: { kind: 'none' } }
  checks.reply?.(value)
  return { status, headers, content: { kind: 'json', text: JSON.stringify(value) } }
}

/** Every error is `{ detail, code, request_id }`. An unexpected error becomes INTERNAL. */
function refusalOf(error: unknown, id: string): HttpAnswer {
  const known: Fault = isFault(error) ? error : fault('INTERNAL')
  const headers: Record<string, string> =
    known.retryAfterMs === undefined
      ? {}
      : { 'retry-after': String(Math.max(1, Math.ceil(known.retryAfterMs / 1000))) }
  if (known.status === 401) headers['www-authenticate'] = 'Bearer'
  return {
    status: known.status,
    headers,
    content: {
      kind: 'json',
      text: JSON.stringify({ detail: known.message, code: known.code, request_id: id }),
    },
  }
}

export function createDispatcher({ engines, log, traces, strict, ...parts }: Around) {
  const access = createAccessControl(parts)
  const call = async (endpoint: Endpoint, request: HttpRequest): Promise<HttpAnswer> => {
    const { operation, checks, instance, handler } = endpoint
    const caller = await access.authenticate(endpoint, request)
    access.checkEnabled(endpoint, request, caller)
    await access.limit(endpoint, { user: caller?.userId, address: request.address })
    const params = checks.params?.(request.params) ?? {}
    // A query that the row does not use is not parsed, so it cannot be wrong.
    const raw = checks.query || operation.reply === 'sse' ? parseQuery(request.query) : {}
    const after = operation.reply === 'sse' ? cursorOf(request, raw) : 0
    const query = checks.query?.(raw) ?? {}
    checks.headers?.({ ...request.headers })
    const body = await readBody(request, endpoint, caller?.userId)
    const epoch = engines.epoch()
    const values = {
      caller,
      params,
      query,
      headers: request.headers,
      body,
      after,
      address: request.address,
      signal: request.signal,
    }
    try {
      const answer = await answerOf(
        endpoint,
        await instance.within(values, handler),
        engines,
        epoch,
        access.guardOf(endpoint, request, caller),
      )
      return caller ? { ...answer, user: caller.userId } : answer
    } catch (cause) {
      // The handler decided by a state that was lost in part, so its fault (a conflict, something
      // missing) is no answer.
      throw engines.epoch() === epoch ? cause : fault('STORAGE_FULL', {}, { cause })
    }
  }

  const refuse = (error: unknown, { id, route }: { id: string; route: string }): HttpAnswer => {
    if (!isFault(error)) log('error', 'request.failed', { request_id: id, route, error })
    return refusalOf(error, id)
  }
  const answered = async (
    endpoint: Endpoint | undefined,
    request: HttpRequest,
  ): Promise<HttpAnswer> => {
    try {
      if (!endpoint) throw fault('ROUTE_NOT_FOUND', { method: request.method, path: request.route })
      return await call(endpoint, request)
    } catch (error) {
      // The client has gone, so nobody reads this answer. Work that stopped for this reason has not
      // failed.
      if (request.signal.aborted && error === request.signal.reason)
        return refuse(
          fault('MALFORMED_REQUEST', { why: 'the client went away' }, { cause: error }),
          request,
        )
      // ROUTE_NOT_FOUND answers callers who do not have the plugin, so no contract names it.
      if (
        strict &&
        endpoint &&
        isFault(error) &&
        error.code !== 'ROUTE_NOT_FOUND' &&
        !faultsOf(endpoint.operation).includes(error.code)
      )
        return refuse(
          new Error(`${endpoint.key} answered ${error.code}, which its contract does not name.`, {
            cause: error,
          }),
          request,
        )
      return refuse(error, request)
    }
  }
  return {
    refuse,
    /**
     * The handler's own work has this span as its parent, by the header `traceparent`. It is absent
     * where nothing is traced.
     */
    handle: (endpoint: Endpoint | undefined, request: HttpRequest): Promise<HttpAnswer> =>
      traces.span(
        `${request.method} ${request.route}`,
        {
          kind: 'server',
          parent: request.headers['traceparent'],
          attributes: {
            'http.request.method': request.method,
            'http.route': request.route,
            'agent_platform.request.id': request.id,
          },
        },
        async span => {
          const { traceparent } = span
          const answer = await answered(
            endpoint,
            traceparent === request.headers['traceparent']
              ? request
              : { ...request, headers: { ...request.headers, traceparent } },
          )
          span.set({ 'http.response.status_code': answer.status })
          if (answer.status >= 500) span.fail(String(answer.status))
          return answer
        },
      ),
  }
}
export type Dispatcher = ReturnType<typeof createDispatcher>
