// Parses JSON from untrusted bytes. Length, encoding and depth are checked first, because
// JSON.parse has no limits.
import { fault } from '#contracts/faults.ts'

export const depthMax = 64
export const bodyBytesMax = 1 << 20

const open = 0x7b
const close = 0x7d
const openList = 0x5b
const closeList = 0x5d
const quote = 0x22
const backslash = 0x5c

/** The deepest nesting of objects and arrays outside strings. Stops at `max + 1`. */
function depthOf(bytes: Uint8Array, max: number): number {
  let depth = 0
  let deepest = 0
  let inString = false
  for (let i = 0; i < bytes.length; i++) {
    const byte = bytes[i]
    if (inString) {
      if (byte === backslash) i++
      else if (byte === quote) inString = false
    } else if (byte === quote) inString = true
    else if (byte === open || byte === openList) {
      if (++depth > deepest && (deepest = depth) > max) return deepest
    } else if (byte === close || byte === closeList) depth--
  }
  return deepest
}

/**
 * MALFORMED_TEXT, TOO_DEEP or MALFORMED_JSON. The engine's message is not passed on, because it
 * quotes the body.
 */
export function parseJson(bytes: Uint8Array): unknown {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch (cause) {
    throw fault('MALFORMED_TEXT', { field: 'body' }, { cause })
  }
  if (depthOf(bytes, depthMax) > depthMax) throw fault('TOO_DEEP', { max: depthMax })
  try {
    return JSON.parse(text)
  } catch (cause) {
    const at = /position (\d+)/.exec(String((cause as Error).message))?.[1]
    throw fault(
      'MALFORMED_JSON',
      { why: at ? `at position ${at}` : 'it ends too early' },
      { cause },
    )
  }
}

/** UNSUPPORTED_MEDIA unless the type is JSON in UTF-8. */
export function requireJson(contentType: string | undefined): void {
  const [type = '', ...parameters] = (contentType ?? '')
    .split(';')
    .map(part => part.trim().toLowerCase())
  if (type !== 'application/json' && !/^application\/[\w.-]+\+json$/.test(type))
    throw fault('UNSUPPORTED_MEDIA', { why: 'must be application/json' })
  const charset = parameters
    .find(parameter => parameter.startsWith('charset='))
    ?.slice(8)
    .replaceAll('"', '')
  if (charset !== undefined && charset !== 'utf-8' && charset !== 'utf8')
    throw fault('UNSUPPORTED_MEDIA', { why: 'the charset must be utf-8' })
}
