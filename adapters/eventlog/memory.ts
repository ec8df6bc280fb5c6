// Event streams in memory, for tests and simulations.
import { fault } from '#contracts/faults.ts'
import { defineAdapter } from '#ports/adapter.ts'
import type { EventlogEngine, LoggedEvent, NewEvent } from '#ports/eventlog.ts'
import {
  appendBytesMax,
  checkStream,
  checkWhole,
  pack,
  packRestored,
  packRewritten,
  readDefault,
  streamNameMax,
  unpack,
} from '../_shared/event-codec.ts'
import { compareKeys } from '../_shared/documents.ts'
import { createFanout } from './lib/fanout.ts'

/** `body`: the event's JSON. */
type Kept = { readonly seq: number; readonly body: string }
type Stream = { kept: Kept[]; trimmed: number }

const lastOf = (stream: Stream | undefined): number =>
  stream?.kept.at(-1)?.seq ?? stream?.trimmed ?? 0

/**
 * Where the first event with a greater seq stands. Seqs have gaps where a stretch was rewritten.
 */
function placeAfter({ kept }: Stream, seq: number): number {
  let low = 0
  let high = kept.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (kept[middle]!.seq > seq) high = middle
    else low = middle + 1
  }
  return low
}
function readFrom(stream: Stream | undefined, after: number, limit: number): LoggedEvent[] {
  if (!stream) return []
  const at = placeAfter(stream, after)
  return stream.kept
    .slice(at, at + limit)
    .map(({ seq, body }) => ({ ...(JSON.parse(body) as NewEvent), seq }))
}

export function memoryEventlog(): EventlogEngine {
  const streams = new Map<string, Stream>()
  let closed = false
  const unavailable = () => fault('UNAVAILABLE', { what: 'The event log', why: 'it is closed' })
  const open = () => {
    if (closed) throw unavailable()
  }
  const fanout = createFanout({
    async read(stream, after, limit) {
      open()
      return readFrom(streams.get(stream), after, limit)
    },
    durable: async () => open(),
  })
  return {
    limits: { appendBytesMax, streamNameMax },
    async append(name, events, { expect } = {}) {
      open()
      checkStream(name)
      if (expect !== undefined) checkWhole('expect', expect, 0)
      const body = pack(events)
      const stream = streams.get(name) ?? { kept: [], trimmed: 0 }
      const head = lastOf(stream)
      if (expect !== undefined && expect !== head)
        throw fault('STREAM_MOVED', { stream: name, head, expect })
      if (events.length === 0) return head
      streams.set(name, stream)
      for (const [i, event] of (JSON.parse(body) as unknown[]).entries())
        stream.kept.push({ seq: head + 1 + i, body: JSON.stringify(event) })
      if (fanout.follows(name)) fanout.deliver(name, unpack(body, head + 1))
      return lastOf(stream)
    },
    async read(name, { after = 0, limit = readDefault } = {}) {
      open()
      checkWhole('after', after, 0)
      checkWhole('limit', limit, 1)
      return readFrom(streams.get(name), after, limit)
    },
    async bounds(name) {
      open()
      const stream = streams.get(name)
      return { first: (stream?.trimmed ?? 0) + 1, last: lastOf(stream) }
    },
    follow(name, { after = 0, signal }) {
      checkWhole('after', after, 0)
      return fanout.follow(name, after, signal)
    },
    async trim(name, through) {
      open()
      checkWhole('through', through, 0)
      const stream = streams.get(name)
      const end = Math.min(through, lastOf(stream))
      if (!stream || end <= stream.trimmed) return
      stream.kept.splice(0, placeAfter(stream, end))
      stream.trimmed = end
    },
    async rewrite(name, range, events) {
      open()
      const body = packRewritten(range, events)
      const stream = streams.get(name)
      const head = lastOf(stream)
      if (!stream || range.through > head)
        throw fault('STREAM_MOVED', { stream: name, head, expect: range.through })
      const at = placeAfter(stream, range.from - 1)
      stream.kept.splice(
        at,
        placeAfter(stream, range.through) - at,
        ...unpack(body, 1).map(({ seq, ...event }) => ({ seq, body: JSON.stringify(event) })),
      )
    },
    async streams({ after = '', limit }) {
      open()
      checkWhole('limit', limit, 1)
      return [...streams.keys()]
        .filter(name => compareKeys(name, after) > 0)
        .sort(compareKeys)
        .slice(0, limit)
    },
    async restore(name, after, events) {
      open()
      checkStream(name)
      packRestored(after, events)
      const stream = streams.get(name) ?? { kept: [], trimmed: after }
      const head = lastOf(stream)
      if (head !== after) throw fault('STREAM_MOVED', { stream: name, head, expect: after })
      if (head === 0 && events.length === 0) return
      streams.set(name, stream)
      for (const { seq, ...event } of events) stream.kept.push({ seq, body: JSON.stringify(event) })
    },
    async remove(name) {
      open()
      streams.delete(name)
    },
    async durable() {
      open()
    },
    async ping() {
      open()
    },
    async close() {
      if (closed) return
      closed = true
      streams.clear()
      fanout.end(unavailable())
    },
  }
}

export default defineAdapter<EventlogEngine>({
  port: 'eventlog',
  scheme: 'memory',
  ephemeral: true,
  open: async () => memoryEventlog(),
})
