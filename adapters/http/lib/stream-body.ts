// Streams a request's body to a reader that cannot hold all of it. The bounds are those of
// readBody, at the reader's pace.
import type { IncomingMessage } from 'node:http'
import { fault } from '#contracts/faults.ts'
import { graceMs as usualGraceMs, hasBody, type BodyBounds } from './read-body.ts'

/** A silence of so many milliseconds ends the body, however much came before. */
const silenceMsMax = 30_000

type Bounds = BodyBounds & { readonly graceMs?: number }

/**
 * Counts only the time in which the reader waits for data. So a slow reader does not make the
 * client count as slow.
 */
async function* read(
  request: IncomingMessage,
  { bytesMax, bytesPerSecondMin, enter, graceMs = usualGraceMs }: Bounds,
): AsyncGenerator<Uint8Array> {
  // Takes a slot with the first read, so that a waiting upload holds none.
  const leave = enter()
  // The request stays open when the reader stops, because a refusal may still be sent.
  const parts = request.iterator({ destroyOnReturn: false })
  let bytes = 0
  let waitedMs = 0
  const next = async () => {
    const started = performance.now()
    const { promise: late, reject } = Promise.withResolvers<never>()
    const patienceMs = Math.min(
      silenceMsMax,
      Math.max(graceMs, (bytes / bytesPerSecondMin) * 1000) - waitedMs,
    )
    const judge = setTimeout(
      () => reject(fault('MALFORMED_REQUEST', { why: 'the body came too slowly' })),
      Math.max(0, patienceMs),
    )
    const part = parts.next().catch((cause: unknown) => {
      throw fault('MALFORMED_REQUEST', { why: 'the body ended early' }, { cause })
    })
    try {
      return await Promise.race([part, late])
    } finally {
      clearTimeout(judge)
      // After a time-out nobody waits for this part. Its error was reported, or comes too late.
      part.catch(() => 'told already, or too late')
      waitedMs += performance.now() - started
    }
  }
  try {
    for (;;) {
      const { done, value } = await next()
      if (done) return
      bytes += (value as Buffer).length
      if (bytes > bytesMax) throw fault('BODY_TOO_LARGE', { max: bytesMax })
      yield value as Buffer
    }
  } finally {
    leave()
    void parts.return?.().catch(() => 'the reader has gone')
  }
}

export function streamBody(request: IncomingMessage, bounds: Bounds): AsyncIterable<Uint8Array> {
  // Checked outside the generator, so that a forbidden head is refused before the first byte is
  // requested.
  const has = hasBody(request, bounds.bytesMax)
  return has ? read(request, bounds) : (async function* () {})()
}
