// Reads the request target (RFC 9112, sections 3.2 and 3.3) before any router. Host names the
// server and never decides the route.
import type { IncomingMessage } from 'node:http'
import { isIPv6 } from 'node:net'
import { fault } from '#contracts/faults.ts'

/** `path` as it was sent, escapes and all; `query` without its question mark. */
export type Target = { readonly path: string; readonly query: string }

/** Characters of a request target: longer than any link made here, shorter than a head may be. */
const targetCharsMax = 8192
const portMax = 65_535

const named = /^([\w.~-]{1,255})(?::(\d{1,5}))?$/
const literal = /^\[([0-9A-Fa-f:.]{2,45})\](?::(\d{1,5}))?$/

/**
 * A name, an IPv4 address, or an IPv6 address in brackets, with or without a port. The empty one is
 * allowed (RFC 9110, section 7.2).
 */
export function isHost(text: string): boolean {
  const inBrackets = text.startsWith('[')
  const [, host, port = '0'] = (inBrackets ? literal : named).exec(text) ?? []
  if (host === undefined) return text === ''
  return Number(port) <= portMax && (!inBrackets || isIPv6(host))
}

const malformed = (why: string) => fault('MALFORMED_REQUEST', { why })

/**
 * A second Host, or none in HTTP/1.1, is refused (RFC 9112, section 3.2): a proxy in front may have
 * read the other one.
 */
function checkHost({ rawHeaders, headers, httpVersionMinor }: IncomingMessage): void {
  let hosts = 0
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]!.length === 4 && rawHeaders[i]!.toLowerCase() === 'host') hosts++
  if (hosts > 1) throw malformed('Host is given more than once')
  if (hosts === 0 && httpVersionMinor > 0) throw malformed('Host is missing')
  if (hosts === 1 && !isHost(headers.host ?? '')) throw malformed('Host is not a host')
}

/** Converts the absolute form to the origin form. */
function originForm(url: string): string {
  if (url.startsWith('/')) return url
  const [start, host = ''] = /^https?:\/\/([^/?]*)/i.exec(url) ?? []
  if (start === undefined || host === '' || !isHost(host))
    throw malformed('the request target is neither a path nor a URL')
  const rest = url.slice(start.length)
  return rest.startsWith('/') ? rest : `/${rest}`
}

/**
 * Throws MALFORMED_REQUEST, MALFORMED_TEXT or TARGET_TOO_LONG for an invalid target. `OPTIONS *`
 * has the path `*`.
 */
export function readTarget(request: IncomingMessage): Target {
  const { url = '', method } = request
  checkHost(request)
  if (url.length > targetCharsMax) throw fault('TARGET_TOO_LONG', { max: targetCharsMax })
  if (url === '*' && method === 'OPTIONS') return { path: '*', query: '' }
  if (!/^[!-~]+$/.test(url) || url.includes('#'))
    throw malformed('the request target has characters that must be escaped')
  const target = originForm(url)
  const at = target.indexOf('?')
  const path = at < 0 ? target : target.slice(0, at)
  try {
    if (path.includes('%')) decodeURIComponent(path)
  } catch (cause) {
    throw fault('MALFORMED_TEXT', { field: 'path' }, { cause })
  }
  return { path, query: at < 0 ? '' : target.slice(at + 1) }
}
