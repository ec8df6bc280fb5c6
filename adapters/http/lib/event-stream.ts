// Server-Sent Events (WHATWG HTML, section 9.2): framing, back-pressure, heartbeats and the end of
// all streams at a stop.
import type { ServerResponse } from 'node:http'
import type { WireEvent } from '#contracts/contract.ts'
import { isFault } from '#contracts/faults.ts'
import { abortable } from '../../_shared/abortable.ts'
import { createShares, type Bounds } from './shares.ts'

/** A comment goes out this often, so that proxies keep a silent stream open. */
const heartbeatSeconds = 15
/**
 * Tells a client when to come back after a break; EventSource would wait for three seconds or more.
 */
const opening = 'retry: 1000\n\n'
/**
 * Why a stream is let go of: a text, for an error of the platform's would be made anew, with its
 * stack, for each.
 */
const over = 'over'
/** A reader that takes nothing for so long is dropped; its cursor serves it when it comes back. */
const stalledMs = 30_000

export const eventStreamHeaders = {
  'content-type': 'text/event-stream; charset=utf-8',
  'x-accel-buffering': 'no',
} as const

const frame = ({ seq, type, data }: WireEvent): string =>
  `id: ${seq}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`

export function createEventStreams(bounds: Bounds) {
  const shares = createShares(bounds, 'event stream')
  // Followers of one run share its event objects, so each event is serialised once for all of them.
  const frames = new WeakMap<WireEvent, string>()
  const sharedFrame = (event: WireEvent): string => {
    let text = frames.get(event)
    if (text === undefined) frames.set(event, (text = frame(event)))
    return text
  }
  // Streams are spread over as many buckets as there are seconds, so that 10,000 heartbeats never
  // come at once.
  const buckets = Array.from({ length: heartbeatSeconds }, () => new Set<ServerResponse>())
  const ends = new Map<ServerResponse, AbortController>()
  let tick = 0
  const heart = setInterval(() => {
    for (const response of buckets[tick++ % heartbeatSeconds]!)
      if (response.writableLength === 0) response.write(':\n\n')
  }, 1000)
  heart.unref()

  const drained = (response: ServerResponse) =>
    new Promise<void>(resolve => {
      const give = setTimeout(() => response.destroy(), stalledMs)
      const go = () => {
        clearTimeout(give)
        response.off('drain', go).off('close', go)
        resolve()
      }
      response.on('drain', go).on('close', go)
    })

  return {
    open: () => ends.size,
    /** A place among the open streams, until the answered function is called. */
    enter: shares.take,
    /** All of a stream that has ended already, which its reader does not share. */
    framesOf: (events: readonly WireEvent[]): string => opening + events.map(frame).join(''),
    /**
     * Writes until the events end, the client leaves, or everything stops. The head goes out with
     * the first events where these are there already.
     */
    async send(
      response: ServerResponse,
      events: AsyncIterable<readonly WireEvent[]>,
    ): Promise<void> {
      const bucket = buckets[ends.size % heartbeatSeconds]!
      const stop = new AbortController()
      response.once('close', () => stop.abort(over))
      ends.set(response, stop)
      bucket.add(response)
      let begun = false
      const begin = (chunk: string): boolean => {
        const text = begun ? chunk : opening + chunk
        begun = true
        return response.write(text)
      }
      const early = setImmediate(() => {
        if (!begun) begin('')
      })
      try {
        for await (const batch of abortable(events, [stop.signal])) {
          if (response.destroyed) break
          if (!begin(batch.map(sharedFrame).join(''))) await drained(response)
        }
      } catch (error) {
        if (stop.signal.aborted) return
        if (!isFault(error)) throw error
        // A comment is nothing to an EventSource, which comes back and is told by its status; a
        // reader sees why.
        begin(`: ${error.code}. ${error.message}\n\n`)
      } finally {
        clearImmediate(early)
        ends.delete(response)
        bucket.delete(response)
        response.end()
      }
    },
    /** Ends every stream cleanly: clients resume from their cursors. */
    endAll() {
      for (const stop of ends.values()) stop.abort(over)
    },
    close() {
      clearInterval(heart)
      this.endAll()
    },
  }
}
export type EventStreams = ReturnType<typeof createEventStreams>
