// The best passages of a collection, by words and by vectors. Exact: a filter is applied to every
// passage before any is left out.
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import { searchLimits } from '#ports/search.ts'
import type { Where } from '#ports/storage.ts'
import { byScore, type Found } from '../lib/fusion.ts'
import { rows, rowsWhere, select, type Table } from './tables.ts'

/** One more than a caller can reach, to tell whether there are more. */
const wanted = searchLimits.depthMax + 1
/**
 * Turns FTS5's bm25() into Lucene's score. They share k1 and b, but FTS5 adds a factor of k1 + 1.
 * Its inverse document frequency is 0 for a term in half of the passages.
 */
const k1 = 1.2
const fts5Idf = (total: number, n: number) =>
  Math.max(Math.log((total - n + 0.5) / (n + 0.5)), 1e-6)
const luceneIdf = (total: number, n: number) => Math.log(1 + (total - n + 0.5) / (n + 0.5))

/** Keeps the best scores, and all that equal the last of them. */
function createBest(most: number) {
  let kept: (readonly [row: number, score: number])[] = []
  let floor = -Infinity
  let room = most * 8
  const prune = () => {
    kept.sort((a, b) => b[1] - a[1])
    if (kept.length < most) return
    floor = kept[most - 1]![1]
    let end = most
    while (end < kept.length && kept[end]![1] === floor) end++
    kept.length = end
    room = Math.max(most * 8, end * 2)
  }
  return {
    add(row: number, score: number): void {
      const single = Math.fround(score)
      if (single < floor) return
      if (kept.push([row, single]) > room) prune()
    },
    all: () => (prune(), kept),
  }
}

function named(
  db: DatabaseSync,
  { at }: Table,
  best: readonly (readonly [row: number, score: number])[],
): Found[] {
  const ids = new Map(
    rows(
      db,
      `SELECT row, id FROM p_${at} WHERE row IN (SELECT value FROM json_each(?))`,
      JSON.stringify(best.map(([row]) => row)),
    ).map(([row, id]) => [row as number, id as string]),
  )
  return best
    .map(([row, score]) => ({ id: ids.get(row)!, score }))
    .sort(byScore)
    .slice(0, wanted)
}

export const count = (db: DatabaseSync, table: Table, where: Where): number => {
  const bound: SQLInputValue[] = []
  const sql = rowsWhere(table, where, bound)
  return rows(db, `SELECT count(*) FROM (${sql})`, ...bound)[0]![0] as number
}

export function byWords(
  db: DatabaseSync,
  table: Table,
  terms: readonly string[],
  where: Where,
): Found[] {
  const { at } = table
  const passages = count(db, table, {})
  const scores = new Map<number, number>()
  const matching = select(db, `SELECT rowid, bm25(t_${at}) FROM t_${at} WHERE t_${at} MATCH ?`)
  for (const term of terms) {
    // The analysis makes no terms with quotation marks, so none is escaped.
    const found = matching.all(`"${term}"`) as unknown as [number, number][]
    const n = found.length
    const scale = -luceneIdf(passages, n) / fts5Idf(passages, n) / (k1 + 1)
    for (const [row, score] of found) scores.set(row, (scores.get(row) ?? 0) + score * scale)
  }
  const bound: SQLInputValue[] = []
  const isFiltered = Object.keys(where).length > 0
  const allowed =
    isFiltered && scores.size > 0
      ? new Set(rows(db, rowsWhere(table, where, bound), ...bound).map(([row]) => row as number))
      : undefined
  const best = createBest(wanted)
  for (const [row, score] of scores) if (!allowed || allowed.has(row)) best.add(row, score)
  return named(db, table, best.all())
}

/** Ranks by cosine. Vectors are read one after the other, and none is kept. */
export function byVector(
  db: DatabaseSync,
  table: Table,
  vector: readonly number[],
  where: Where,
  cosineMin: number,
): Found[] {
  const {
    at,
    spec: { dimensions },
  } = table
  const bound: SQLInputValue[] = []
  const asked = Float32Array.from(vector)
  const best = createBest(wanted)
  const filter =
    Object.keys(where).length > 0 ? ` WHERE row IN (${rowsWhere(table, where, bound)})` : ''
  for (const [row, bytes] of select(db, `SELECT row, vector FROM v_${at}${filter}`).iterate(
    ...bound,
  ) as Iterable<unknown> as Iterable<readonly [number, Uint8Array]>) {
    const kept = new Float32Array(bytes.buffer, bytes.byteOffset, dimensions)
    let cosine = 0
    for (let dimension = 0; dimension < dimensions; dimension++)
      cosine += kept[dimension]! * asked[dimension]!
    if (Math.fround(cosine) >= Math.fround(cosineMin)) best.add(row, cosine)
  }
  return named(db, table, best.all())
}
