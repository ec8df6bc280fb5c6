// Passages of a collection that hold every word, the last ids first.
import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import type { CheckedMatch } from '../search/checks.ts'
import { conditionsOf, rows, select, type Row, type Table } from './tables.ts'

/** Up to so many passages with the words are gathered first; of words that are more common, passages are gone through in their order and asked one by one. */
const gatheredMax = 5000

/** A term holds no quotation mark: the analysis makes none. */
const expressionOf = (words: readonly (readonly string[])[]) => words.map(terms => `(${terms.map(term => `"${term}"`).join(' OR ')})`).join(' AND ')

export function holding(db: DatabaseSync, table: Table, words: readonly (readonly string[])[], { where, before, limit }: CheckedMatch): { readonly ids: string[]; readonly more: boolean } {
  if (words.length === 0) return { ids: [], more: false }
  const { at } = table, wanted = expressionOf(words), bound: SQLInputValue[] = [], filters = conditionsOf(table, where, bound)
  if (before !== undefined) {
    filters.push('id < ?')
    bound.push(before)
  }
  const gathered = rows(db, `SELECT rowid FROM t_${at} WHERE t_${at} MATCH ? LIMIT ${gatheredMax + 1}`, wanted).map(([row]) => row as number)
  const isCommon = gathered.length > gatheredMax
  if (!isCommon) {
    filters.push('row IN (SELECT value FROM json_each(?))')
    bound.push(JSON.stringify(gathered))
  }
  const inOrder = select(db, `SELECT id, row FROM p_${at}${filters.length === 0 ? '' : ` WHERE ${filters.join(' AND ')}`} ORDER BY id DESC`).iterate(...bound) as Iterable<unknown> as Iterable<Row>
  const one = isCommon ? select(db, `SELECT 1 FROM t_${at} WHERE t_${at} MATCH ? AND rowid = ?`) : undefined
  const ids: string[] = []
  for (const [id, row] of inOrder) if ((!one || one.get(wanted, row as number) !== undefined) && ids.push(id as string) > limit) break
  return { ids: ids.slice(0, limit), more: ids.length > limit }
}
