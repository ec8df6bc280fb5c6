// Event streams in MongoDB. An append is one document, and its id says where it begins in its
// stream. Of two appends at the same place one is refused, so no transaction is needed.
import { MongoBulkWriteError, type Collection as Kept } from 'mongodb'
import pLimit from 'p-limit'
import { fault } from '#contracts/faults.ts'
import { defineAdapter, type Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
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
import { compareKeys } from '../_shared/documents.ts'
import { createFanout } from './lib/fanout.ts'
import { createKeyedQueue } from '../_shared/keyed-queue.ts'
import { createLru } from '../_shared/lru.ts'
import {
  closed as closedFault,
  connect,
  isUnanswered,
  orFault,
  toFault,
  urlOptions,
  type Connection,
} from '../_shared/mongodb/database.ts'
import { watchInserts } from '../_shared/mongodb/watch.ts'

/**
 * `s`: the stream. `g`: its edition, which each rewrite changes. `f`, `l`: the first and last seq.
 * `b`: the events.
 */
type Segment = { _id: string; s: string; g: number; f: number; l: number; b: string }
/**
 * The head of a stream that was trimmed or rewritten. `t`: trimmed up to this seq. `g`: the current
 * edition.
 */
type Head = { _id: string; t: number; g: number }
type Standing = { readonly edition: number; readonly trimmed: number; readonly last: number }
type Asked = {
  readonly body: string
  readonly count: number
  readonly expect: number | undefined
  readonly done: (last: number) => void
  readonly failed: (error: unknown) => void
}
type Waiting = {
  readonly segment: Segment
  readonly done: () => void
  readonly failed: (error: unknown) => void
}

const standingsKept = 10_000
const segmentsRead = 100
const readTries = 10
const eventsTogether = 256
const duplicate = 11_000
/**
 * The share of connections that followers may use; each read makes two calls. Ten thousand
 * followers that begin at once must not delay appends.
 */
const readBackShare = 1 / 4

/**
 * Sends appends of many streams together. Appends that come while one message is under way go with
 * the next.
 */
function createWriter(segments: Kept<Segment>) {
  let waiting: Waiting[] = []
  let busy = false
  const send = async (batch: readonly Waiting[]) => {
    const failures = new Map<number, unknown>()
    try {
      await segments.insertMany(
        batch.map(({ segment }) => segment),
        { ordered: false },
      )
    } catch (error) {
      if (!(error instanceof MongoBulkWriteError) || isUnanswered(error))
        return batch.forEach(({ failed }) => failed(toFault(error)))
      for (const one of [error.writeErrors].flat()) failures.set(one.index, one)
    }
    batch.forEach(({ done, failed }, at) => (failures.has(at) ? failed(failures.get(at)) : done()))
  }
  const flush = async () => {
    busy = true
    while (waiting.length > 0) {
      const batch = waiting
      waiting = []
      await send(batch)
    }
    busy = false
  }
  return (segment: Segment) =>
    new Promise<void>((done, failed) => {
      waiting.push({ segment, done, failed })
      if (!busy) {
        busy = true
        setImmediate(() => void flush())
      }
    })
}

export async function mongoEventlog({
  connection: { db, ping, close },
  clock,
  log,
}: {
  connection: Connection
  clock: Clock
  log: Log
}): Promise<EventlogEngine> {
  const segments = db.collection<Segment>('_segments')
  const heads = db.collection<Head>('_streams')
  await orFault(segments.createIndexes([{ key: { s: 1, g: 1, l: 1 }, name: 'stream' }]))
  const write = createWriter(segments)
  const lanes = createKeyedQueue()
  const standings = createLru<string, Standing>(standingsKept)
  const appends = new Map<string, Asked[]>()
  const stopping = new AbortController()
  let isClosed = false
  let closing: Promise<void> | undefined

  const check = () => {
    if (isClosed) throw closedFault()
  }
  const headOf = async (name: string): Promise<Omit<Standing, 'last'>> => {
    const head = await orFault(heads.findOne({ _id: name }))
    return { edition: head?.g ?? 0, trimmed: head?.t ?? 0 }
  }
  const standingOf = async (name: string): Promise<Standing> => {
    const { edition, trimmed } = await headOf(name)
    const end = await orFault(
      segments.findOne({ s: name, g: edition }, { sort: { l: -1 }, projection: { l: 1 } }),
    )
    const standing = { edition, trimmed, last: Math.max(trimmed, end?.l ?? 0) }
    standings.set(name, standing)
    return standing
  }
  const segmentOf = (s: string, g: number, f: number, l: number, b: string): Segment => ({
    _id: `${g}:${f}:${s}`,
    s,
    g,
    f,
    l,
    b,
  })

  /**
   * Segments of one edition behind `after`. A gap between them means that the stream was trimmed or
   * rewritten meanwhile, and it is read again.
   */
  const segmentsAfter = async (
    name: string,
    after: number,
  ): Promise<{
    readonly from: number
    readonly edition: number
    readonly found: readonly Segment[]
  }> => {
    for (let tries = 0; tries < readTries; tries++) {
      const page = (g: number, position: number) =>
        orFault(
          segments
            .find({ s: name, g, l: { $gt: position } }, { sort: { l: 1 }, limit: segmentsRead })
            .toArray(),
        )
      // Few streams were ever trimmed or rewritten. So head and segments are read at once, with a
      // guessed edition, and a wrong guess is read again.
      const guess = standings.get(name)?.edition ?? 0
      const [{ edition, trimmed }, guessed] = await Promise.all([headOf(name), page(guess, after)])
      const from = Math.max(after, trimmed)
      const found = edition === guess && from === after ? guessed : await page(edition, from)
      if (found.every(({ f }, at) => (at === 0 ? f <= from + 1 : f === found[at - 1]!.l + 1)))
        return { from, edition, found }
    }
    throw fault(
      'UNAVAILABLE',
      { what: `The stream ${name}`, why: 'it changes all the while' },
      { retryAfterMs: 1000 },
    )
  }
  const readFrom = async (name: string, after: number, limit: number): Promise<LoggedEvent[]> => {
    const events: LoggedEvent[] = []
    for (let at = after; events.length < limit; ) {
      const { from, found } = await segmentsAfter(name, at)
      for (const { b, f } of found) {
        events.push(...unpack(b, f, from))
        if (events.length >= limit) break
      }
      if (found.length < segmentsRead) break
      at = found.at(-1)!.l
    }
    return events.slice(0, limit)
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
  /**
   * Writes the whole stream as another edition, makes that edition current, and removes the old
   * one.
   */
  const replace = async (
    name: string,
    { edition, trimmed }: Standing,
    next: readonly Segment[],
  ): Promise<void> => {
    await orFault(segments.deleteMany({ s: name, g: edition + 1 }))
    await orFault(segments.insertMany([...next], { ordered: true }))
    await orFault(
      edition === 0 && trimmed === 0
        ? heads.updateOne(
            { _id: name },
            { $set: { g: 1 }, $setOnInsert: { t: 0 } },
            { upsert: true },
          )
        : heads.updateOne({ _id: name, g: edition }, { $set: { g: edition + 1 } }),
    )
    await orFault(segments.deleteMany({ s: name, g: edition }))
    standings.delete(name)
  }
  /** A segment's events outside the range, with their seqs. */
  const outside = ({ s, g, f, l, b }: Segment, from: number, through: number): Segment[] => {
    const events = unpack(b, f)
    const part = (first: number, last: number) =>
      segmentOf(
        s,
        g + 1,
        first,
        last,
        JSON.stringify(
          events
            .filter(({ seq }) => seq >= first && seq <= last)
            .map(({ seq, ...event }) => [seq, event]),
        ),
      )
    if (l < from || f > through) return [segmentOf(s, g + 1, f, l, b)]
    return [
      ...(f < from ? [part(f, from - 1)] : []),
      ...(l > through ? [part(through + 1, l)] : []),
    ]
  }

  /**
   * Appends the calls that waited for a busy stream as one segment. Each caller is answered as if
   * it was alone. Answers the calls that must be tried again, and forgets what is known to be old.
   */
  const appendOnce = async (name: string, asked: readonly Asked[]): Promise<readonly Asked[]> => {
    const known = standings.get(name)
    const { edition, trimmed, last } = known ?? (await standingOf(name))
    const taken: (Asked & { readonly end: number })[] = []
    let end = last
    let bytes = 0
    let rest = 0
    // An empty append asks for the stream's current end.
    if (known && asked.every(({ count }) => count === 0)) return standings.delete(name), asked
    for (const one of asked) {
      const isMoved = one.expect !== undefined && one.expect !== end
      // No append is refused because of events that are not written yet; the stream's end is read
      // again.
      if (
        taken.length > 0 &&
        (isMoved ||
          bytes + one.body.length > appendBytesMax ||
          end - last + one.count > eventsTogether)
      )
        break
      if (isMoved && known) return standings.delete(name), asked.slice(rest)
      rest++
      if (isMoved) {
        one.failed(fault('STREAM_MOVED', { stream: name, head: end, expect: one.expect! }))
        continue
      }
      taken.push({ ...one, end: (end += one.count) })
      bytes += one.body.length
    }
    if (end > last) {
      const body = `[${taken
        .filter(({ count }) => count > 0)
        .map(({ body: part }) => part.slice(1, -1))
        .join(',')}]`
      try {
        await write(segmentOf(name, edition, last + 1, end, body))
      } catch (error) {
        // Another process appended there, so what is known of the stream is old.
        if ((error as { code?: unknown }).code === duplicate)
          return standings.delete(name), [...taken, ...asked.slice(rest)]
        for (const { failed } of taken) failed(error)
        return asked.slice(rest)
      }
      standings.set(name, { edition, trimmed, last: end })
      if (fanout.follows(name)) fanout.deliver(name, unpack(body, last + 1))
    }
    for (const one of taken) one.done(one.end)
    return asked.slice(rest)
  }
  const appendAll = async (name: string): Promise<void> => {
    for (let asked: readonly Asked[] = take(name); asked.length > 0; ) {
      try {
        asked = await appendOnce(name, asked)
      } catch (error) {
        for (const { failed } of asked) failed(error)
        return
      }
    }
  }
  const take = (name: string): readonly Asked[] => {
    const asked = appends.get(name) ?? []
    appends.delete(name)
    return asked
  }

  return {
    limits: { appendBytesMax, streamNameMax },
    async append(name, events, { expect } = {}) {
      check()
      checkStream(name)
      if (expect !== undefined) checkWhole('expect', expect, 0)
      const body = pack(events)
      return new Promise<number>((done, failed) => {
        const asked = appends.get(name)
        if (asked) return void asked.push({ body, count: events.length, expect, done, failed })
        appends.set(name, [{ body, count: events.length, expect, done, failed }])
        void lanes.one(name, () => appendAll(name))
      })
    },
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
    async trim(name, through) {
      check()
      checkWhole('through', through, 0)
      await lanes.one(name, async () => {
        const { edition, trimmed, last } = await standingOf(name)
        const end = Math.min(through, last)
        if (end <= trimmed) return
        await orFault(
          heads.updateOne(
            { _id: name },
            { $max: { t: end }, $setOnInsert: { g: 0 } },
            { upsert: true },
          ),
        )
        await orFault(segments.deleteMany({ s: name, g: edition, l: { $lte: end } }))
        standings.delete(name)
      })
    },
    async rewrite(name, range, events) {
      check()
      const body = packRewritten(range, events)
      await lanes.one(name, async () => {
        const standing = await standingOf(name)
        const { edition, last } = standing
        const { from, through } = range
        if (through > last)
          throw fault('STREAM_MOVED', { stream: name, head: last, expect: through })
        const old = await orFault(
          segments.find({ s: name, g: edition }, { sort: { l: 1 } }).toArray(),
        )
        const kept = old.flatMap(segment => outside(segment, from, through))
        await replace(
          name,
          standing,
          [...kept, segmentOf(name, edition + 1, from, through, body)].sort((a, b) => a.l - b.l),
        )
      })
    },
    async streams({ after = '', limit }) {
      check()
      checkWhole('limit', limit, 1)
      // Walks along the index. A group stage would read the rest of the collection for each page.
      const names = new Set<string>()
      for await (const { s } of segments.find(
        { s: { $gt: after } },
        { projection: { _id: 0, s: 1 }, sort: { s: 1, g: 1, l: 1 } },
      ))
        if (names.add(s).size > limit) break
      const trimmed = await orFault(
        heads
          .find({ _id: { $gt: after } }, { projection: { _id: 1 }, sort: { _id: 1 }, limit })
          .toArray(),
      )
      return [...new Set([...names, ...trimmed.map(({ _id }) => _id)])]
        .sort(compareKeys)
        .slice(0, limit)
    },
    async restore(name, after, events) {
      check()
      checkStream(name)
      const { body, end } = packRestored(after, events)
      await lanes.one(name, async () => {
        const { edition, last } = await standingOf(name)
        if (last !== after && last > 0)
          throw fault('STREAM_MOVED', { stream: name, head: last, expect: after })
        standings.delete(name)
        if (last === 0 && after > 0)
          await orFault(
            heads.updateOne(
              { _id: name },
              { $set: { t: after }, $setOnInsert: { g: 0 } },
              { upsert: true },
            ),
          )
        if (end > after)
          await write(segmentOf(name, edition, after + 1, end, body)).catch(
            (error: { code?: unknown }) =>
              Promise.reject(
                error.code === duplicate
                  ? fault('STREAM_MOVED', { stream: name, head: end, expect: after })
                  : toFault(error),
              ),
          )
      })
    },
    async remove(name) {
      check()
      await lanes.one(name, async () => {
        // Without its head, an edition is no longer current.
        await orFault(heads.deleteOne({ _id: name }))
        await orFault(segments.deleteMany({ s: name }))
        standings.delete(name)
      })
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
