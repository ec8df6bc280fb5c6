// Changes what stands in a stream of MongoDB: trims, rewrites, restores and removes.
import { fault } from '#contracts/faults.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import {
  checkStream,
  checkWhole,
  packRestored,
  packRewritten,
  unpack,
} from '../../_shared/event-codec.ts'
import type { KeyedQueue } from '../../_shared/keyed-queue.ts'
import { orFault, toFault } from '../../_shared/mongodb/database.ts'
import { duplicate, segmentOf, type Segment, type Standing, type Streams } from './segments.ts'

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
  return [...(f < from ? [part(f, from - 1)] : []), ...(l > through ? [part(through + 1, l)] : [])]
}

export function createChanges({
  streams: { segments, heads, standings, standingOf },
  write,
  lanes,
  check,
}: {
  readonly streams: Streams
  readonly write: (segment: Segment) => Promise<void>
  readonly lanes: KeyedQueue
  readonly check: () => void
}): Pick<EventlogEngine, 'trim' | 'rewrite' | 'restore' | 'remove'> {
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

  return {
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
  }
}
