// Appends to streams in MongoDB. Calls that wait for a busy stream share a segment.
import { fault } from '#contracts/faults.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import { appendBytesMax, checkStream, checkWhole, pack, unpack } from '../../_shared/event-codec.ts'
import type { KeyedQueue } from '../../_shared/keyed-queue.ts'
import type { Fanout } from '../lib/fanout.ts'
import { duplicate, segmentOf, type Segment, type Streams } from './segments.ts'

type Asked = {
  readonly body: string
  readonly count: number
  readonly expect: number | undefined
  readonly done: (last: number) => void
  readonly failed: (error: unknown) => void
}

const eventsTogether = 256

export function createAppend({
  streams: { standings, standingOf },
  write,
  lanes,
  fanout,
  check,
}: {
  readonly streams: Streams
  readonly write: (segment: Segment) => Promise<void>
  readonly lanes: KeyedQueue
  readonly fanout: Fanout
  readonly check: () => void
}): EventlogEngine['append'] {
  const appends = new Map<string, Asked[]>()

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

  return async (name, events, { expect } = {}) => {
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
  }
}
