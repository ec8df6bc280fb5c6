// Event streams in memory, for tests and simulations.
import { fault } from '#contracts/faults.ts'
import { defineAdapter } from '#ports/adapter.ts'
import type { EventlogEngine, LoggedEvent } from '#ports/eventlog.ts'
import { appendBytesMax, checkStream, checkWhole, pack, readDefault, streamNameMax, unpack } from '../_shared/events.ts'
import { createFanout } from '../_shared/fanout.ts'

/** `bodies`: an event's JSON each, the first of them numbered `trimmed` + 1. */
type Stream = { readonly bodies: string[]; trimmed: number }

const lastOf = (stream: Stream | undefined): number => (stream ? stream.trimmed + stream.bodies.length : 0)

function readFrom(stream: Stream | undefined, after: number, limit: number): LoggedEvent[] {
  if (!stream) return []
  const from = Math.max(after, stream.trimmed)
  const bodies = stream.bodies.slice(from - stream.trimmed, from - stream.trimmed + limit)
  return unpack(`[${bodies.join(',')}]`, from + 1)
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
      const stream = streams.get(name) ?? { bodies: [], trimmed: 0 }
      const head = lastOf(stream)
      if (expect !== undefined && expect !== head) throw fault('STREAM_MOVED', { stream: name, head, expect })
      if (events.length === 0) return head
      streams.set(name, stream)
      for (const event of JSON.parse(body) as unknown[]) stream.bodies.push(JSON.stringify(event))
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
      stream.bodies.splice(0, end - stream.trimmed)
      stream.trimmed = end
    },
    async remove(name) {
      open()
      streams.delete(name)
    },
    async durable() { open() },
    async ping() { open() },
    async close() {
      if (closed) return
      closed = true
      streams.clear()
      fanout.end(unavailable())
    },
  }
}

export default defineAdapter<EventlogEngine>({ port: 'eventlog', scheme: 'memory', open: async () => memoryEventlog() })
