// Event streams in the same SQLite file and transactions as the documents.
import { defineAdapter } from '#ports/adapter.ts'
import type { EventlogEngine, LoggedEvent } from '#ports/eventlog.ts'
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
import { createFanout, type Fanout } from './lib/fanout.ts'
import { pathOf, quotaOf, sharedWriter, sqliteOptions } from '../_shared/sqlite/sharing.ts'
import { closed, openWriter, type Writer } from '../_shared/sqlite/writer.ts'

/** An append that is not on disk yet, so followers do not see it. */
type Held = {
  readonly operation: number
  readonly stream: string
  readonly first: number
  readonly body: string
}

const nothing = () => undefined

async function readBack(
  writer: Writer,
  stream: string,
  after: number,
  limit: number,
): Promise<LoggedEvent[]> {
  const events: LoggedEvent[] = []
  for (let [at, more] = [after, true]; more && events.length < limit; ) {
    const answer = await writer.read(
      ['read', stream, at, limit - events.length],
      (parts: (number | string | boolean)[]) => parts,
    )
    const from = answer[0] as number
    for (let place = 1; place < answer.length - 1; place += 2)
      events.push(...unpack(answer[place + 1] as string, answer[place] as number, from))
    at = events.at(-1)?.seq ?? from
    more = answer.at(-1) as boolean
  }
  return events.length > limit ? events.slice(0, limit) : events
}

/** Delivers appends to followers when they are on disk. */
function createDelivery(writer: Writer, fanout: Fanout) {
  let held: Held[] = []
  const unwatch = writer.watch({
    settled(through) {
      let count = 0
      while (count < held.length && held[count]!.operation <= through) {
        const { stream, first, body } = held[count++]!
        if (fanout.follows(stream)) fanout.deliver(stream, unpack(body, first))
      }
      if (count > 0) held = held.slice(count)
    },
    lost: () => void (held = []),
    ended: why => fanout.end(why),
  })
  return { hold: (append: Held) => void held.push(append), unwatch }
}

/** Refuses everything once this engine is closed, while others may still use its thread. */
function createGate(writer: Writer): Writer & { shut(): void } {
  let open = true
  return {
    ...writer,
    read: (operation, convert) =>
      open ? writer.read(operation, convert) : Promise.reject(closed()),
    write: (operation, convert) =>
      open ? writer.write(operation, convert) : Promise.reject(closed()),
    durable: () => (open ? writer.durable() : Promise.reject(closed())),
    shut: () => void (open = false),
  }
}

function createEngine(shared: Writer, release: () => Promise<void>): EventlogEngine {
  const writer = createGate(shared)
  const fanout = createFanout({
    read: (stream, after, limit) => readBack(writer, stream, after, limit),
    durable: writer.durable,
  })
  const { hold, unwatch } = createDelivery(writer, fanout)
  return {
    limits: { appendBytesMax, streamNameMax },
    async append(stream, events, { expect } = {}) {
      checkStream(stream)
      if (expect !== undefined) checkWhole('expect', expect, 0)
      const body = pack(events)
      let operation = 0
      const applied = writer.write(
        ['append', stream, expect ?? -1, events.length, body],
        (last: number) => {
          if (events.length > 0 && fanout.follows(stream))
            hold({ operation, stream, first: last - events.length + 1, body })
          return last
        },
      )
      operation = writer.last()
      if (fanout.follows(stream)) writer.hasten()
      return applied
    },
    async read(stream, { after = 0, limit = readDefault } = {}) {
      checkWhole('after', after, 0)
      checkWhole('limit', limit, 1)
      return readBack(writer, stream, after, limit)
    },
    bounds: stream =>
      writer.read(['bounds', stream], ([first, last]: [number, number]) => ({ first, last })),
    follow(stream, { after = 0, signal }) {
      checkWhole('after', after, 0)
      return fanout.follow(stream, after, signal)
    },
    async trim(stream, through) {
      checkWhole('through', through, 0)
      return writer.write(['trim', stream, through], nothing)
    },
    rewrite: async (stream, range, events) =>
      writer.write(
        ['rewrite', stream, range.from, range.through, packRewritten(range, events)],
        nothing,
      ),
    async streams({ after = '', limit }) {
      checkWhole('limit', limit, 1)
      return writer.read(['streams', after, limit], (names: string[]) => names)
    },
    async restore(stream, after, events) {
      checkStream(stream)
      const { body, end } = packRestored(after, events)
      return writer.write(['restore', stream, after, end, body], nothing)
    },
    remove: stream => writer.write(['remove_stream', stream], nothing),
    durable: writer.durable,
    epoch: writer.epoch,
    ping: () => writer.read(['ping'], nothing),
    async close() {
      writer.shut()
      await release()
      fanout.end(closed())
      unwatch()
    },
  }
}

export default defineAdapter<EventlogEngine>({
  port: 'eventlog',
  scheme: 'sqlite',
  needs: ['storage'],
  options: sqliteOptions,
  async open(opening) {
    const { clock, engine } = opening
    const path = pathOf(opening)
    const shared = sharedWriter(engine<unknown>('storage'))
    // The storage owns the thread and ends it. Here the applied writes are only brought to disk.
    if (shared?.path === path) return createEngine(shared, () => shared.durable().catch(nothing))
    const own = await openWriter({ path, bytesMax: quotaOf(opening) }, clock.now)
    return createEngine(own, own.close)
  },
})
