// Server-Sent Events (WHATWG HTML, section 9.2): framing, back-pressure, heartbeats and the end of
// all streams at a stop.
import type { ServerResponse } from 'node:http'
import type { WireEvent } from '#contracts/contract.ts'
import { isFault } from '#contracts/faults.ts'
import { abortable } from '../../_shared/abortable.ts'
import { createShares, type Bounds } from './shares.ts'

/** Seconds between two heartbeat comments, which make proxies keep a silent stream open. */
const heartbeatSeconds = 15
/** Tells clients to reconnect after a second; EventSource would wait three seconds or more. */
const opening = 'retry: 1000\n\n'
/**
 * The reason of a dropped stream. A text, because a new error with its stack for each stream would
 * cost more.
 */
const over = 'over'
/** Milliseconds after which a reader that takes nothing is dropped. It can resume by its cursor. */
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
    /** Takes one of the slots for open streams, until the returned function is called. */
    enter: shares.take,
    /** The frames of a stream that has ended. Its events are not shared with other readers. */
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
        // An EventSource ignores this comment, reconnects, and sees the fault's status. People who
        // read the stream see the reason.
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
