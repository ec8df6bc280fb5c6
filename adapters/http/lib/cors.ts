// Cross-origin rules (WHATWG Fetch, section 3.2): which origins may call, and preflights.
import type { IncomingMessage, ServerResponse } from 'node:http'

const methods = 'GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS'
const headers =
  'Authorization, Content-Type, Idempotency-Key, Last-Event-ID, X-API-Key, X-Request-Id'
const exposed = 'Retry-After, X-Request-Id'
const preflightSeconds = 600

/** Adds what a browser needs. True when the request was a preflight and is answered. */
export function applyCors(
  request: IncomingMessage,
  response: ServerResponse,
  origins: readonly string[],
): boolean {
  const origin = request.headers.origin
  if (origin !== undefined && (origins.includes('*') || origins.includes(origin))) {
    response.setHeader('access-control-allow-origin', origins.includes('*') ? '*' : origin)
    response.setHeader('access-control-expose-headers', exposed)
    response.setHeader('vary', 'Origin')
    if (request.method === 'OPTIONS') {
      response.setHeader('access-control-allow-methods', methods)
      response.setHeader('access-control-allow-headers', headers)
      response.setHeader('access-control-max-age', String(preflightSeconds))
    }
  }
  if (request.method !== 'OPTIONS') return false
  response.writeHead(204, { allow: methods })
  response.end()
  return true
}
