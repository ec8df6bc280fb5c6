// Reads and checks what a request carries: query, cursor, body.
import { fault } from '#contracts/faults.ts'
import type { HttpRequest } from '#ports/http.ts'
import { bodyBytesMax, parseJson, requireJson } from '../request-body/body.ts'
import type { Endpoint } from './endpoint.ts'

/** The last value of a repeated name counts. MALFORMED_TEXT for escapes that are not UTF-8. */
export function parseQuery(raw: string): Record<string, string> {
  // Without a prototype, `__proto__` is an ordinary name, and unknown like any other.
  const out = Object.create(null) as Record<string, string>
  for (const part of raw ? raw.split('&') : []) {
    const at = part.indexOf('=')
    const [name, value] = at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)]
    try {
      out[decodeURIComponent(name.replaceAll('+', ' '))] = decodeURIComponent(
        value.replaceAll('+', ' '),
      )
    } catch (cause) {
      throw fault('MALFORMED_TEXT', { field: 'query' }, { cause })
    }
  }
  return out
}

/**
 * `Last-Event-ID` takes precedence over `?after`, because a reconnecting EventSource repeats the
 * old URL.
 */
export function cursorOf(request: HttpRequest, query: Record<string, unknown>): number {
  const header = request.headers['last-event-id']
  const [field, text] =
    header !== undefined && header !== ''
      ? ['Last-Event-ID', header]
      : ['after', String(query['after'] ?? '0')]
  if (!/^\d{1,15}$/.test(text))
    throw fault('CURSOR_INVALID', { field, why: 'must be the seq of an event' })
  return Number(text)
}

/** Undefined where the row has no body, or where an optional body is absent. */
export async function readBody(
  request: HttpRequest,
  { operation, checks }: Endpoint,
  user: string | undefined,
): Promise<unknown> {
  if (!checks.body) return undefined
  const bytesMax = operation.bodyMaxBytes ?? bodyBytesMax
  if (operation.streamed !== undefined) {
    const source = request.bodyStream(bytesMax, user)
    requireJson(request.headers['content-type'])
    // Loads the parser with the first streamed body, so that other processes do without it.
    const { streamBody } = await import('../request-body/streamed.ts')
    const { contentEncoding } =
      (operation.body as { properties?: Record<string, { contentEncoding?: string }> })
        .properties?.[operation.streamed] ?? {}
    return streamBody(source, {
      field: operation.streamed,
      encoding: contentEncoding === 'base64' ? 'base64' : 'text',
      check: checks.body,
      checkEarly: checks.bodyStart!,
    })
  }
  const bytes = await request.body(bytesMax, user)
  if (bytes.length === 0) {
    if (operation.bodyOptional) return undefined
    throw fault('INVALID_FIELD', { field: 'body', why: 'is required' })
  }
  requireJson(request.headers['content-type'])
  return checks.body(parseJson(bytes))
}
