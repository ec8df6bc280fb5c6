// Reads a request's body, bounded in bytes and in time.
import type { IncomingMessage } from 'node:http'
import { fault } from '#contracts/faults.ts'

/** How long a body may take before its rate is checked, in milliseconds. */
export const graceMs = 5000

/**
 * Whether the request has a body. Throws UNSUPPORTED_MEDIA for a content encoding, and
 * BODY_TOO_LARGE when the head announces more than `bytesMax`.
 */
export function hasBody(request: IncomingMessage, bytesMax: number): boolean {
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding !== 'identity')
    throw fault('UNSUPPORTED_MEDIA', {
      why: `a body in Content-Encoding ${encoding.slice(0, 40)} is not taken`,
    })
  const declared = Number(request.headers['content-length'])
  if (declared > bytesMax) throw fault('BODY_TOO_LARGE', { max: bytesMax })
  return !(
    declared === 0 ||
    (Number.isNaN(declared) && request.headers['transfer-encoding'] === undefined)
  )
}

export type BodyBounds = {
  readonly bytesMax: number
  readonly bytesPerSecondMin: number
  /** Takes a slot for a body that is being read; returns the function that frees it. */
  readonly enter: () => () => void
}

/**
 * Returns the bytes of the body, at most `bytesMax`. A body that is slower than `bytesPerSecondMin`
 * after a grace period is cut off.
 */
export function readBody(
  request: IncomingMessage,
  { bytesMax, bytesPerSecondMin, enter }: BodyBounds,
): Promise<Buffer> {
  if (!hasBody(request, bytesMax)) return Promise.resolve(Buffer.alloc(0))
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    let bytes = 0
    let judge: NodeJS.Timeout | undefined
    let leave: (() => void) | undefined
    let over = false
    const end = (error: Error | undefined) => {
      over = true
      clearInterval(judge)
      leave?.()
      request.off('data', take).off('end', finish).off('error', lost).off('close', lost)
      if (error) reject(error)
      else resolve(parts.length === 1 ? parts[0]! : Buffer.concat(parts, bytes))
    }
    const take = (part: Buffer) => {
      bytes += part.length
      if (bytes > bytesMax) end(fault('BODY_TOO_LARGE', { max: bytesMax }))
      else parts.push(part)
    }
    const finish = () => end(undefined)
    const lost = () => end(fault('MALFORMED_REQUEST', { why: 'the body ended early' }))
    request.on('data', take).on('end', finish).on('error', lost).on('close', lost)
    // Most bodies arrive in one packet. Only slower ones take a slot and are timed.
    setImmediate(() => {
      if (over || request.complete || request.destroyed) return
      try {
        leave = enter()
      } catch (refusal) {
        return end(refusal as Error)
      }
      const started = performance.now()
      judge = setInterval(() => {
        const seconds = (performance.now() - started) / 1000
        if (seconds * 1000 > graceMs && bytes / seconds < bytesPerSecondMin)
          end(fault('MALFORMED_REQUEST', { why: 'the body came too slowly' }))
      }, 1000)
      judge.unref()
    })
  })
}
