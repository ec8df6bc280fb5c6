// Passages of a collection that hold every word, the last ids first.
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { CheckedMatch } from '../lib/queries.ts'
import { conditionsOf, rows, select, type Row, type Table } from './tables.ts'

/**
 * Passages with the words that are gathered first. For more common words, passages are read in
 * their order, a page at a time.
 */
const gatheredMax = 5000

/** Passages that are checked together. */
const pageRows = 500
/** Rows that lie no further apart than this are checked in one look-up of the words. */
const gapMax = 10_000

function* pages(all: Iterable<Row>): Generator<Row[]> {
  let page: Row[] = []
  for (const row of all)
    if (page.push(row) === pageRows) {
      yield page
      page = []
    }
  yield page
}
/**
 * Returns which of these rows hold the words. It asks for ranges of rows: beside MATCH, SQLite 3.53
 * ignores `rowid = ?`, and returns the first match instead.
 */
function among(match: StatementSync, wanted: string, all: readonly number[]): Set<number> {
  const sorted = all.toSorted((a, b) => a - b)
  const found = new Set<number>()
  for (let from = 0, to = 0; from < sorted.length; from = to = to + 1) {
    while (to + 1 < sorted.length && sorted[to + 1]! - sorted[to]! <= gapMax) to++
    for (const [row] of match.all(wanted, sorted[from]!, sorted[to]!) as unknown as Row[])
      found.add(row as number)
  }
  return found
}

/** The analysis makes no terms with quotation marks, so none is escaped. */
const expressionOf = (words: readonly (readonly string[])[]) =>
  words.map(terms => `(${terms.map(term => `"${term}"`).join(' OR ')})`).join(' AND ')

export function holding(
  db: DatabaseSync,
  table: Table,
  words: readonly (readonly string[])[],
  { where, before, limit }: CheckedMatch,
): { readonly ids: string[]; readonly more: boolean } {
  if (words.length === 0) return { ids: [], more: false }
  const { at } = table
  const wanted = expressionOf(words)
  const bound: SQLInputValue[] = []
  const filters = conditionsOf(table, where, bound)
  if (before !== undefined) {
    filters.push('id < ?')
    bound.push(before)
  }
  const gathered = rows(
    db,
    `SELECT rowid FROM t_${at} WHERE t_${at} MATCH ? LIMIT ${gatheredMax + 1}`,
    wanted,
  ).map(([row]) => row as number)
  const isCommon = gathered.length > gatheredMax
  if (!isCommon) {
    filters.push('row IN (SELECT value FROM json_each(?))')
    bound.push(JSON.stringify(gathered))
  }
  const inOrder = select(
    db,
    'SELECT id, row FROM ' +
      `p_${at}${filters.length === 0 ? '' : ` WHERE ${filters.join(' AND ')}`} ORDER BY id ` +
      'DESC',
  ).iterate(...bound) as Iterable<unknown> as Iterable<Row>
  const match = isCommon
    ? select(db, `SELECT rowid FROM t_${at} WHERE t_${at} MATCH ? AND rowid BETWEEN ? AND ?`)
    : undefined
  const ids: string[] = []
  for (const page of pages(inOrder)) {
    const hold =
      match &&
      among(
        match,
        wanted,
        page.map(([, row]) => row as number),
      )
    for (const [id, row] of page) if (!hold || hold.has(row as number)) ids.push(id as string)
    if (ids.length > limit) break
  }
  return { ids: ids.slice(0, limit), more: ids.length > limit }
}
