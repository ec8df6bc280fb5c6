// Streams of events, as the writer's thread keeps them: one row for each append, its events packed
// as one JSON array.
import { fault } from '#contracts/faults.ts'
import { packRewritten, unpack } from '../event-codec.ts'
import { createLru } from '../lru.ts'
import type { Database } from './database.ts'

type Head = { last: number; trimmed: number }

const headsMax = 20_000
const segmentsAtOnce = 64
/** A read ends early beyond so many characters, and the caller asks for the rest. */
const readCharsMax = 4 * 1024 * 1024

export function createStreams(db: Database) {
  const heads = createLru<string, Head>(headsMax)
  const last = db.prepare('SELECT last FROM segments WHERE stream = ? ORDER BY last DESC LIMIT 1')
  const trimmed = db.prepare('SELECT through FROM trims WHERE stream = ?')
  const add = db.prepare('INSERT INTO segments VALUES (?, ?, ?, ?)')
  const segments = db.prepare(
    'SELECT first, last, body FROM segments WHERE stream = ? AND last > ? ORDER BY last ' +
      `LIMIT ${segmentsAtOnce}`,
  )

  const overlapping = db.prepare(
    'SELECT first, last, body FROM segments WHERE stream = ? AND last >= ? AND first <= ?',
  )
  const without = db.prepare('DELETE FROM segments WHERE stream = ? AND last >= ? AND first <= ?')

  function headOf(stream: string): Head {
    const known = heads.get(stream)
    if (known) return known
    const through = Number(trimmed.get(stream)?.[0] ?? 0)
    const head = { last: Math.max(through, Number(last.get(stream)?.[0] ?? 0)), trimmed: through }
    heads.set(stream, head)
    return head
  }

  return {
    append(stream: string, expect: number, count: number, body: string): number {
      const head = headOf(stream)
      if (expect >= 0 && expect !== head.last)
        throw fault('STREAM_MOVED', { stream, head: head.last, expect })
      if (count === 0) return head.last
      const end = head.last + count
      add.run(stream, head.last + 1, end, body)
      return (head.last = end)
    },
    /**
     * The seq after which events count, then pairs of a segment's first seq and its body. The last
     * element is true when there is more.
     */
    read(stream: string, after: number, limit: number): (number | string | boolean)[] {
      const from = Math.max(after, headOf(stream).trimmed)
      const found: (number | string | boolean)[] = [from]
      for (let at = from, chars = 0; ; ) {
        const rows = segments.all(stream, at)
        for (const [first, end, body] of rows as [number, number, string][]) {
          found.push(first, body)
          at = end
          chars += body.length
          // A rewritten stretch has fewer events than seqs. Only the caller, who unpacks them, can
          // tell whether they are enough.
          if (at - from >= limit) return [...found, at < headOf(stream).last]
          if (chars > readCharsMax) return [...found, true]
        }
        if (rows.length < segmentsAtOnce) return [...found, false]
      }
    },
    bounds(stream: string): [number, number] {
      const head = headOf(stream)
      return [head.trimmed + 1, head.last]
    },
    names: (after: string, limit: number): string[] =>
      db
        .prepare(
          'SELECT stream FROM segments WHERE stream > ?1 UNION SELECT stream FROM trims ' +
            'WHERE stream > ?1 ORDER BY stream LIMIT ?2',
        )
        .all(after, limit)
        .map(([name]) => name as string),
    restore(stream: string, after: number, end: number, body: string): undefined {
      const head = headOf(stream)
      if (head.last === 0 && after > 0) {
        db.prepare('INSERT INTO trims VALUES (?, ?)').run(stream, after)
        head.last = head.trimmed = after
      }
      if (head.last !== after)
        throw fault('STREAM_MOVED', { stream, head: head.last, expect: after })
      if (end === after) return
      add.run(stream, after + 1, end, body)
      head.last = end
    },
    trim(stream: string, through: number): undefined {
      const head = headOf(stream)
      const end = Math.min(through, head.last)
      if (end <= head.trimmed) return
      // The mark comes first. Without it, removing the last segment would free its seqs for new
      // events.
      db.prepare(
        'INSERT INTO trims VALUES (?, ?) ON CONFLICT (stream) DO UPDATE SET through = ' +
          'excluded.through',
      ).run(stream, end)
      db.prepare('DELETE FROM segments WHERE stream = ? AND last <= ?').run(stream, end)
      head.trimmed = end
    },
    rewrite(stream: string, from: number, through: number, body: string): undefined {
      const { last: head } = headOf(stream)
      if (through > head) throw fault('STREAM_MOVED', { stream, head, expect: through })
      // A segment that extends beyond the range keeps its events outside the range.
      const reaching = (overlapping.all(stream, from, through) as [number, number, string][])
        .filter(([first, end]) => first < from || end > through)
        .flatMap(([first, , packed]) => unpack(packed, first))
      without.run(stream, from, through)
      for (const kept of [
        reaching.filter(({ seq }) => seq < from),
        reaching.filter(({ seq }) => seq > through),
      ]) {
        if (kept.length === 0) continue
        const range = { from: kept[0]!.seq, through: kept.at(-1)!.seq }
        add.run(stream, range.from, range.through, packRewritten(range, kept))
      }
      add.run(stream, from, through, body)
    },
    remove(stream: string): undefined {
      heads.delete(stream)
      db.prepare('DELETE FROM segments WHERE stream = ?').run(stream)
      db.prepare('DELETE FROM trims WHERE stream = ?').run(stream)
    },
    forget: () => heads.clear(),
  }
}
