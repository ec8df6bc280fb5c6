// A request's body as it arrives, for whoever cannot hold it: the same bounds as readBody, at the
// reader's pace.
import type { IncomingMessage } from 'node:http'
import { fault } from '#contracts/faults.ts'
import { graceMs as usualGraceMs, hasBody, type BodyBounds } from './read-body.ts'

/** However much has come before, a silence as long as this ends it, in milliseconds. */
const silenceMsMax = 30_000

type Bounds = BodyBounds & { readonly graceMs?: number }

/**
 * Counts only time in which the reader wanted more, so that a slow reader does not make a slow
 * client.
 */
async function* read(
  request: IncomingMessage,
  { bytesMax, bytesPerSecondMin, enter, graceMs = usualGraceMs }: Bounds,
): AsyncGenerator<Uint8Array> {
  // Takes a slot with the first read, so that a waiting upload holds none.
  const leave = enter()
  // The request is kept open when the reader stops: its refusal is still to be sent.
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
      // Whoever is judged late does not wait for the rest; what then comes of it is nobody's.
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
  // Not within the generator: what the head forbids is refused before the first byte is asked for.
  const has = hasBody(request, bounds.bytesMax)
  return has ? read(request, bounds) : (async function* () {})()
}
