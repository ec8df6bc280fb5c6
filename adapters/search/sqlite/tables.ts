// A collection's tables: its passages, their terms in FTS5, their vectors. Each collection has its
// own, so that no filter has to keep organisations apart and the statistics of ranking are its own.
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { Language, Passage as Given } from '#ports/search.ts'
import type { Where } from '#ports/storage.ts'
import type { Analyser } from '../analysis/analyser.ts'
import { keyOf } from '../../_shared/documents.ts'
import { checkedIds, type Kept, type Paged } from '../lib/passages.ts'
import type { Fields, Spec } from '../lib/specs.ts'
import { conditions } from '../../_shared/sqlite/where.ts'

/** `at` is the number in the names of its tables. */
export type Table = { readonly at: number; readonly spec: Spec; readonly analysis: number }
export type Row = readonly (string | number | Uint8Array | null)[]

/** Field names were checked when the collection was defined. */
const columnsOf = ({ fields }: Spec) => Object.keys(fields).map(name => `"f_${name}"`)
const hasField =
  ({ fields }: Spec) =>
  (name: string) =>
    Object.hasOwn(fields, name)

export function select(db: DatabaseSync, sql: string): StatementSync {
  const statement = db.prepare(sql)
  statement.setReturnArrays(true)
  return statement
}
export const rows = (db: DatabaseSync, sql: string, ...values: SQLInputValue[]): Row[] =>
  select(db, sql).all(...values) as unknown as Row[]

export function find(db: DatabaseSync, org: string, collection: string): Table | undefined {
  const [row] = rows(
    db,
    'SELECT at, spec, analysis FROM collections WHERE org = ? AND name = ?',
    org,
    collection,
  )
  return (
    row && {
      at: row[0] as number,
      spec: JSON.parse(row[1] as string) as Spec,
      analysis: row[2] as number,
    }
  )
}

/**
 * The analysis makes the terms: ASCII letters, digits, + and #, or characters beyond ASCII. This
 * tokenizer keeps all of these.
 */
const tokenizer = `ascii tokenchars '+#'`

export function make(db: DatabaseSync, { at, spec }: Table): void {
  const columns = columnsOf(spec)
  const passage = [
    'row INTEGER PRIMARY KEY',
    'id TEXT NOT NULL UNIQUE',
    'text TEXT NOT NULL',
    'language TEXT NOT NULL',
    'said TEXT',
    'fields TEXT NOT NULL',
    ...columns,
  ].join(', ')
  db.exec(`CREATE TABLE p_${at} (${passage});
    CREATE TABLE v_${at} (row INTEGER PRIMARY KEY, vector BLOB NOT NULL);
    CREATE VIRTUAL TABLE t_${at} USING fts5 (terms, tokenize = "${tokenizer}")`)
  for (const column of columns)
    db.exec(`CREATE INDEX "i_${at}_${column.slice(1)} ON p_${at} (${column})`)
}
export const drop = (db: DatabaseSync, at: number): void =>
  db.exec(`DROP TABLE p_${at}; DROP TABLE v_${at}; DROP TABLE t_${at}`)

/** The filter as conditions of SQL; `bound` takes their values. */
export const conditionsOf = ({ spec }: Table, where: Where, bound: SQLInputValue[]): string[] =>
  conditions(where, hasField(spec), bound)
/** A query for the rows of passages that match the filter. */
export function rowsWhere(table: Table, where: Where, bound: SQLInputValue[]): string {
  const { at } = table
  const all = conditionsOf(table, where, bound)
  return `SELECT row FROM p_${at}${all.length === 0 ? '' : ` WHERE ${all.join(' AND ')}`}`
}

export type Passage = {
  readonly id: string
  readonly text: string
  readonly language: Language
  /** The language that the passage's owner named. */
  readonly said: Language | undefined
  readonly fields: Fields
  readonly vector: Float32Array | undefined
}

/** Adds and replaces passages of one collection, inside a transaction. */
export function writer(db: DatabaseSync, { at, spec }: Table, analyser: Analyser) {
  const columns = columnsOf(spec)
  const names = Object.keys(spec.fields)
  const old = select(db, `DELETE FROM p_${at} WHERE id = ? RETURNING row`)
  const dropTerms = db.prepare(`DELETE FROM t_${at} WHERE rowid = ?`)
  const dropVector = db.prepare(`DELETE FROM v_${at} WHERE row = ?`)
  // Most passages are new, so the insert comes first. A look-up follows only where the insert did
  // nothing.
  const insert = db.prepare(
    `INSERT INTO p_${at} ` +
      `(${['id', 'text', 'language', 'said', 'fields', ...columns].join(', ')}) VALUES (?, ` +
      `?, ?, ?, ?${', ?'.repeat(columns.length)}) ON CONFLICT (id) DO NOTHING`,
  )
  const insertTerms = db.prepare(`INSERT INTO t_${at} (rowid, terms) VALUES (?, ?)`)
  const insertVector = db.prepare(`INSERT INTO v_${at} VALUES (?, ?)`)
  const remove = (id: string): boolean => {
    const row = (old.all(id) as unknown as Row[])[0]?.[0] as number | undefined
    if (row === undefined) return false
    dropTerms.run(row)
    dropVector.run(row)
    return true
  }
  return {
    remove,
    put({ id, text, language, said, fields, vector }: Passage) {
      const values = [
        id,
        text,
        language,
        said ?? null,
        JSON.stringify(fields),
        ...names.map(name => keyOf(fields[name])),
      ]
      let { changes, lastInsertRowid: row } = insert.run(...values)
      if (changes === 0) {
        remove(id)
        row = insert.run(...values).lastInsertRowid
      }
      insertTerms.run(row, analyser.terms(text, language).join(' '))
      if (vector)
        insertVector.run(row, new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength))
    },
  }
}

export const passageOf = (
  { id, text, language, fields, vector }: Kept,
  analyser: Analyser,
): Passage => ({
  id,
  text,
  fields,
  said: language,
  language: language ?? analyser.languageOf(text),
  vector: vector && Float32Array.from(vector),
})

/** Reads passages as their owner gave them, in the order of their ids. */
export function read(db: DatabaseSync, { at, spec }: Table, { after, limit }: Paged): Given[] {
  return rows(
    db,
    `SELECT id, text, said, fields, vector FROM p_${at} LEFT JOIN v_${at} USING (row) ` +
      'WHERE id > ? ORDER BY id LIMIT ?',
    after,
    limit,
  ).map(([id, text, said, fields, vector]) => {
    const bytes = vector as Uint8Array | null
    return {
      id: id as string,
      text: text as string,
      fields: JSON.parse(fields as string) as Fields,
      ...(said === null ? {} : { language: said as Language }),
      ...(bytes
        ? { vector: [...new Float32Array(bytes.buffer, bytes.byteOffset, spec.dimensions)] }
        : {}),
    }
  })
}

/** Removes passages; returns how many there were. */
export function removeWhich(
  db: DatabaseSync,
  table: Table,
  which: { readonly ids: readonly string[] } | { readonly where: Where },
): number {
  const { at } = table
  const bound: SQLInputValue[] = []
  const sql =
    'ids' in which
      ? `SELECT row FROM p_${at} WHERE id IN (SELECT value FROM json_each(?))`
      : rowsWhere(table, which.where, bound)
  if ('ids' in which) bound.push(JSON.stringify(checkedIds(which.ids)))
  db.exec('CREATE TEMP TABLE IF NOT EXISTS gone (row INTEGER PRIMARY KEY); DELETE FROM temp.gone')
  const count = Number(db.prepare(`INSERT INTO temp.gone ${sql}`).run(...bound).changes)
  for (const [name, key] of [
    ['t', 'rowid'],
    ['v', 'row'],
    ['p', 'row'],
  ])
    db.exec(`DELETE FROM ${name}_${at} WHERE ${key} IN (SELECT row FROM temp.gone)`)
  return count
}
