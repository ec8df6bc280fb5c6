// How streams lie in MongoDB: in segments, of which a head tells the current edition. Reads them.
import type { Db } from 'mongodb'
import { fault } from '#contracts/faults.ts'
import type { LoggedEvent } from '#ports/eventlog.ts'
import { compareKeys } from '../../_shared/documents.ts'
import { unpack } from '../../_shared/event-codec.ts'
import { createLru } from '../../_shared/lru.ts'
import { orFault } from '../../_shared/mongodb/database.ts'

/**
 * `s`: the stream. `g`: its edition, which each rewrite changes. `f`, `l`: the first and last seq.
 * `b`: the events.
 */
export type Segment = { _id: string; s: string; g: number; f: number; l: number; b: string }
/**
 * The head of a stream that was trimmed or rewritten. `t`: trimmed up to this seq. `g`: the current
 * edition.
 */
type Head = { _id: string; t: number; g: number }
export type Standing = { readonly edition: number; readonly trimmed: number; readonly last: number }

const standingsKept = 10_000
const segmentsRead = 100
const readTries = 10
/** The code of a write that found its place taken. */
export const duplicate = 11_000

export const segmentOf = (s: string, g: number, f: number, l: number, b: string): Segment => ({
  _id: `${g}:${f}:${s}`,
  s,
  g,
  f,
  l,
  b,
})

export async function openStreams(db: Db) {
  const segments = db.collection<Segment>('_segments')
  const heads = db.collection<Head>('_streams')
  await orFault(segments.createIndexes([{ key: { s: 1, g: 1, l: 1 }, name: 'stream' }]))
  const standings = createLru<string, Standing>(standingsKept)

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
  const namesAfter = async (after: string, limit: number): Promise<string[]> => {
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
  }

  return { segments, heads, standings, standingOf, readFrom, namesAfter }
}
export type Streams = Awaited<ReturnType<typeof openStreams>>
