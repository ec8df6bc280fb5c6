// How far a copy is, in a line a second; and what its parts share.
import { createHash } from 'node:crypto'
import type { Clock } from '#ports/clock.ts'

export type Counts = {
  documents: number
  streams: number
  events: number
  blobs: number
  bytes: number
  passages: number
}
export type Progress = {
  readonly counts: Counts
  /**
   * Adds to the counts, and tells them with `what` is under way where the last line is a second
   * old.
   */
  add(what: string, more: Partial<Counts>): void
  /** Tells at once. */
  say(line: string): void
}
/**
 * Something held on both sides, in figures: `count` of documents, events, blobs or passages, and a
 * SHA-256 over them in their order.
 */
export type Digest = {
  readonly what: 'documents' | 'events' | 'blobs' | 'passages'
  /** A collection's; of the others there is one. */
  readonly name: string
  readonly count: number
  readonly sha256: string
}

const everyMs = 1000
const namesAtOnce = 500

export function createProgress(
  clock: Pick<Clock, 'monotonic'>,
  tell: (line: string) => void,
): Progress {
  const counts: Counts = { documents: 0, streams: 0, events: 0, blobs: 0, bytes: 0, passages: 0 }
  let reportedAt = clock.monotonic()
  const figures = () =>
    `${counts.documents} documents, ${counts.streams} streams, ${counts.events} events, ` +
    `${counts.blobs} blobs, ${Math.round(counts.bytes / 1_048_576)} MiB of blobs, ` +
    `${counts.passages} passages`
  return {
    counts,
    add(what, more) {
      for (const name of Object.keys(more) as (keyof Counts)[]) counts[name] += more[name]!
      if (clock.monotonic() - reportedAt < everyMs) return
      reportedAt = clock.monotonic()
      tell(`${what}: ${figures()}`)
    },
    say: line => tell(`${line} (${figures()})`),
  }
}

/**
 * JSON that is the same for the same value: engines may keep the fields of an object in another
 * order.
 */
export const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  )

export const sha256 = () => createHash('sha256')

/** Works on some at a time; answers in their order. */
export async function several<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const answers: R[] = []
  for (let at = 0; at < items.length; at += atOnce)
    answers.push(...(await Promise.all(items.slice(at, at + atOnce).map(work))))
  return answers
}

/** Names in their order, page by page: there may be any number of them. */
export async function* inPages(
  list: (options: {
    readonly after?: string
    readonly limit: number
  }) => Promise<readonly string[]>,
): AsyncGenerator<readonly string[]> {
  for (let after: string | undefined; ; ) {
    const found = await list({ limit: namesAtOnce, ...(after === undefined ? {} : { after }) })
    if (found.length === 0) return
    yield found
    after = found.at(-1)!
  }
}
