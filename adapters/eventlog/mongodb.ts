// Event streams in MongoDB. An append is one document, and its id says where it begins in its
// stream. Of two appends at the same place one is refused, so no transaction is needed.
import pLimit from 'p-limit'
import { defineAdapter, type Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import {
  appendBytesMax,
  checkWhole,
  readDefault,
  streamNameMax,
  unpack,
} from '../_shared/event-codec.ts'
import { createKeyedQueue } from '../_shared/keyed-queue.ts'
import {
  closed as closedFault,
  connect,
  urlOptions,
  type Connection,
} from '../_shared/mongodb/database.ts'
import { watchInserts } from '../_shared/mongodb/watch.ts'
import { createFanout } from './lib/fanout.ts'
import { createAppend } from './mongodb/appends.ts'
import { createChanges } from './mongodb/changes.ts'
import { openStreams } from './mongodb/segments.ts'
import { createWriter } from './mongodb/writer.ts'

/**
 * The share of connections that followers may use; each read makes two calls. Ten thousand
 * followers that begin at once must not delay appends.
 */
const readBackShare = 1 / 4

export async function mongoEventlog({
  connection: { db, ping, close },
  clock,
  log,
}: {
  connection: Connection
  clock: Clock
  log: Log
}): Promise<EventlogEngine> {
  const streams = await openStreams(db)
  const { segments, standingOf, readFrom } = streams
  const write = createWriter(segments)
  const lanes = createKeyedQueue()
  const stopping = new AbortController()
  let isClosed = false
  let closing: Promise<void> | undefined

  const check = () => {
    if (isClosed) throw closedFault()
  }
  const readingBack = pLimit(Math.max(1, Math.floor(db.client.options.maxPoolSize * readBackShare)))
  const fanout = createFanout({
    read: (name, after, limit, signal) =>
      readingBack(async () => (check(), signal.aborted ? [] : readFrom(name, after, limit))),
    durable: async () => check(),
  })
  const watching = { begun: false }
  const watch = () => {
    if (watching.begun) return
    watching.begun = true
    watchInserts(segments, {
      clock,
      log,
      signal: stopping.signal,
      lag: fanout.lag,
      take: ({ s, b, f }) => void (fanout.follows(s) && fanout.deliver(s, unpack(b, f))),
    })
  }

  return {
    limits: { appendBytesMax, streamNameMax },
    append: createAppend({ streams, write, lanes, fanout, check }),
    ...createChanges({ streams, write, lanes, check }),
    async read(name, { after = 0, limit = readDefault } = {}) {
      check()
      checkWhole('after', after, 0)
      checkWhole('limit', limit, 1)
      return lanes.one(name, () => readFrom(name, after, limit))
    },
    async bounds(name) {
      check()
      return lanes.one(name, async () => {
        const { trimmed, last } = await standingOf(name)
        return { first: trimmed + 1, last }
      })
    },
    follow(name, { after = 0, signal }) {
      checkWhole('after', after, 0)
      watch()
      return fanout.follow(name, after, signal)
    },
    async streams({ after = '', limit }) {
      check()
      checkWhole('limit', limit, 1)
      return streams.namesAfter(after, limit)
    },
    async durable() {
      check()
      await lanes.settled()
    },
    async ping() {
      check()
      await ping()
    },
    close() {
      if (isClosed) return closing!
      isClosed = true
      stopping.abort()
      fanout.end(closedFault())
      return (closing = lanes.settled().then(close))
    },
  }
}

export default defineAdapter<EventlogEngine>({
  port: 'eventlog',
  scheme: 'mongodb',
  options: urlOptions,
  open: async ({ url, clock, log }) =>
    mongoEventlog({ connection: await connect(url), clock, log }),
})
