// restify as a router. Its requests come from our own server; restify neither creates one nor
// listens.
import type { IncomingMessage, ServerResponse } from 'node:http'
import restify from 'restify'
import { fault } from '#contracts/faults.ts'
import type { Route } from '#ports/http.ts'
import type { Target } from '../lib/request-target.ts'
import { createTemplates } from '../lib/templates.ts'

export type Routed = { readonly route: Route; readonly params: Readonly<Record<string, string>> }
type Request = IncomingMessage & {
  params: Record<string, string>
  target: Target
  getUrl(): { readonly pathname: string; readonly search: string }
}

/** A longer parameter matches no route. */
const paramCharsMax = 4096
const verbs = { GET: 'get', POST: 'post', PUT: 'put', PATCH: 'patch', DELETE: 'del' } as const
const silent = {
  trace() {},
  debug() {},
  info() {},
  warn() {},
  error() {},
  fatal() {},
  child: () => silent,
}

/** `answer` gets routed requests. `deny` gets the fault of every other request. */
export function createRouter(
  answer: (routed: Routed, request: IncomingMessage, response: ServerResponse) => Promise<void>,
  deny: (error: unknown, request: IncomingMessage, response: ServerResponse) => void,
) {
  // The type definitions are of an older version, which had another logger.
  const server = restify.createServer({
    name: '',
    log: silent as never,
    maxParamLength: paramCharsMax,
  } as restify.ServerOptions)
  const mounted = new Map<string, { route: Route; name: string }>()
  let templates = createTemplates([])

  const notAllowed = ({ target, method = '' }: Request, response: ServerResponse) => {
    response.setHeader('allow', templates.methodsAt(target.path).join(', '))
    return fault('METHOD_NOT_ALLOWED', { method, path: target.path.slice(0, 200) })
  }
  // `done` is not called, so that restify does not overwrite our answer.
  server.on(
    'restifyError',
    (
      request: Request,
      response: ServerResponse,
      error: { statusCode?: number; message: string },
    ) => {
      if (response.headersSent) return
      const { target, method = '' } = request
      if (error.statusCode === 405) return deny(notAllowed(request, response), request, response)
      deny(
        error.statusCode === 404
          ? fault('ROUTE_NOT_FOUND', { method, path: target.path.slice(0, 200) })
          : error,
        request,
        response,
      )
    },
  )
  const handler = (entry: { route: Route }) => async (given: unknown, response: unknown) => {
    const request = given as Request
    const { route } = entry
    if (templates.isMisled(route.path, request.target.path))
      return deny(
        notAllowed(request, response as ServerResponse),
        request,
        response as ServerResponse,
      )
    await answer({ route, params: request.params }, request, response as ServerResponse).catch(
      (error: unknown) => deny(error, request, response as ServerResponse),
    )
  }
  return {
    /**
     * Replaces all routes. Unchanged routes stay mounted, because a route's handler is looked up at
     * each call.
     */
    mount(rows: readonly Route[]): void {
      const wanted = new Map(rows.map(row => [`${row.method} ${row.path}`, row]))
      for (const [key, { name }] of mounted)
        if (!wanted.has(key)) {
          server.rm(name)
          mounted.delete(key)
        }
      for (const [key, route] of wanted) {
        const known = mounted.get(key)
        if (known) known.route = route
        else {
          const entry = { route, name: '' }
          const name = key.replace(/\W+/g, '-').toLowerCase()
          const path = route.path.replace(/\{(\w+)\}/g, ':$1')
          // restify renames a route whose name is taken. Only the new name removes it.
          entry.name = server[verbs[route.method]](
            { path, name },
            handler(entry),
          ) as unknown as string
          mounted.set(key, entry)
        }
      }
      templates = createTemplates(rows)
    },
    /**
     * Replaces restify's getUrl, which joins Host and target and parses them. That would throw
     * outside any handler, and let Host choose the route.
     */
    dispatch(given: IncomingMessage, response: ServerResponse, target: Target): void {
      const request = given as Request
      request.target = target
      request.getUrl = () => ({ pathname: target.path, search: target.query && `?${target.query}` })
      server.server.emit('request', request, response)
    },
  }
}
