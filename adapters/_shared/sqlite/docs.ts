// Operations on documents in the writer's thread. Documents travel as JSON text.
import type { SQLInputValue } from 'node:sqlite'
import { fault } from '#contracts/faults.ts'
import type { Change, Collection, Where } from '#ports/storage.ts'
import {
  applyChange,
  checkSize,
  decodeCursor,
  encodeCursor,
  keyOf,
  matches,
  type Fields,
  type Key,
} from '../documents.ts'
import type { Database } from './database.ts'
import { failureOf, isDuplicate } from './failures.ts'
import type { Failure } from './protocol.ts'
import { openTable, type Table } from './tables.ts'
import { conditions, expression, keysOf, present } from './where.ts'

/** Characters after which a page ends early, so that no answer exceeds the thread's memory. */
const pageCharsMax = 8 * 1024 * 1024
/** Rows that updateMany reads, and a sweep removes, at a time. */
const chunkRows = 200
const sweepRows = 500
const readable = 'json_valid(doc)'

export type Wanted = {
  readonly where: Where
  readonly orderBy: readonly [string, 'asc' | 'desc']
  readonly limit: number
  readonly after?: string
}

const whereSql = (parts: readonly string[]) =>
  parts.length === 0 ? '' : ` WHERE ${parts.join(' AND ')}`
/**
 * Whether the change only removes fields whose names need no quotes in a JSON path. The id is
 * excluded.
 */
const isPlainUnset = ({ unset = [], ...others }: Change) =>
  unset.length > 0 &&
  unset.every(field => /^\w+$/.test(field) && field !== 'id') &&
  Object.keys(others).length === 0

export function createDocs(db: Database, now: () => number) {
  const specs: Collection[] = []
  const tables: (Table | undefined)[] = []

  /**
   * After a loss the tables may be gone with their transaction, so they are opened again on next
   * use.
   */
  const table = (at: number): Table => (tables[at] ??= openTable(db, specs[at]!))

  const isExpired = ({ expires }: Table, doc: Fields): boolean =>
    expires !== undefined && typeof doc[expires] === 'number' && doc[expires] <= now()
  function filter(t: Table, where: Where, bound: SQLInputValue[]): string[] {
    const parts = conditions(where, t.has, bound)
    if (t.expires !== undefined) {
      parts.push(
        `("f_${t.expires}" IS NULL OR typeof("f_${t.expires}") = 'text' OR "f_${t.expires}" > ?)`,
      )
      bound.push(now())
    }
    return parts
  }

  function sweep(at: number): number {
    const t = table(at)
    if (t.expires === undefined) return 0
    const column = `"f_${t.expires}"`
    return db
      .prepare(
        `DELETE FROM ${t.sql} WHERE rowid IN (SELECT rowid FROM ${t.sql} WHERE ${column} ` +
          `<= ? AND typeof(${column}) <> 'text' LIMIT ${sweepRows})`,
      )
      .run(now())
  }

  function insert(at: number, id: string, json: string, keys: readonly (Key | null)[]): undefined {
    const t = table(at)
    const values =
      keys.length === t.fields.length ? keys : keysOf(JSON.parse(json) as Fields, t.fields)
    try {
      t.insert.run(id, json, ...values)
    } catch (error) {
      // An expired document that is not swept yet must not block a new one.
      if (!isDuplicate(error) || sweep(at) === 0) throw error
      while (sweep(at) > 0);
      t.insert.run(id, json, ...values)
    }
  }

  /**
   * Writes a changed document. Only changed columns are written, because each one costs its
   * indexes.
   */
  function write(t: Table, rowid: Key, old: Fields, next: Fields): string {
    const json = JSON.stringify(next)
    checkSize(t.name, json)
    const changed: string[] = []
    const values: SQLInputValue[] = [json]
    for (const field of t.fields) {
      const key = keyOf(next[field])
      if (keyOf(old[field]) === key) continue
      changed.push(field)
      values.push(key)
    }
    values.push(rowid)
    t.updateRow(changed).run(...values)
    return json
  }

  function update(at: number, id: string, changing: string): string | undefined {
    const t = table(at)
    const row = t.get.get(id)
    if (!row) return undefined
    const [change, condition] = JSON.parse(changing) as [Change, Where | null]
    const doc = JSON.parse(row[1] as string) as Fields
    if (isExpired(t, doc) || !matches(doc, condition ?? undefined)) return undefined
    return write(t, row[0]!, doc, applyChange(doc, change))
  }

  /**
   * Removes fields from all documents in one statement, without parsing them here. Documents nested
   * deeper than SQLite reads stay as they are.
   */
  function unsetMany(t: Table, where: Where, fields: readonly string[]): number {
    const bound: SQLInputValue[] = []
    const parts = [...filter(t, where, bound), readable]
    const paths = fields.map(field => `, '$.${field}'`)
    const columns = fields.filter(t.has).map(field => `, "f_${field}" = NULL`)
    return db
      .prepare(
        `UPDATE ${t.sql} SET doc = json_remove(doc${paths.join('')})${columns.join('')}` +
          whereSql(parts),
      )
      .run(...bound)
  }

  function updateMany(at: number, asked: string): number {
    const t = table(at)
    const [where, change] = JSON.parse(asked) as [Where, Change]
    const isUnset = isPlainUnset(change)
    for (let count = isUnset ? unsetMany(t, where, change.unset!) : 0, last: Key = -1; ; ) {
      const bound: SQLInputValue[] = []
      const parts = [
        ...filter(t, where, bound),
        ...(isUnset ? [`NOT ${readable}`] : []),
        'rowid > ?',
      ]
      const rows = db
        .prepare(
          `SELECT rowid, doc FROM ${t.sql}${whereSql(parts)} ORDER BY rowid LIMIT ${chunkRows}`,
        )
        .all(...bound, last)
      for (const [rowid, json] of rows) {
        const doc = JSON.parse(json as string) as Fields
        write(t, (last = rowid!), doc, applyChange(doc, change))
        count++
      }
      if (rows.length < chunkRows) return count
    }
  }

  function remove(at: number, id: string, condition?: string): boolean {
    const t = table(at)
    const row = t.get.get(id)
    if (!row) return false
    if (condition !== undefined || t.expires !== undefined) {
      const doc = JSON.parse(row[1] as string) as Fields
      if (
        isExpired(t, doc) ||
        (condition !== undefined && !matches(doc, JSON.parse(condition) as Where))
      )
        return false
    }
    return t.removeRow.run(row[0]!) > 0
  }

  function get(at: number, id: string): string | undefined {
    const t = table(at)
    const json = t.get.get(id)?.[1] as string | undefined
    return json === undefined ||
      (t.expires !== undefined && isExpired(t, JSON.parse(json) as Fields))
      ? undefined
      : json
  }

  function find(at: number, asked: string): (string | undefined)[] {
    const t = table(at)
    const { where, orderBy, limit, after } = JSON.parse(asked) as Wanted
    const [field, direction] = orderBy
    const ordered = expression(field, t.has)
    const bound: SQLInputValue[] = []
    const parts = filter(t, where, bound)
    if (field !== 'id') parts.push(present(field, t.has))
    if (after !== undefined) {
      const { key, id } = decodeCursor(orderBy, after)
      parts.push(
        field === 'id'
          ? `id ${direction === 'asc' ? '>' : '<'} ?`
          : `(${ordered}, id) ${direction === 'asc' ? '>' : '<'} (?, ?)`,
      )
      bound.push(...(field === 'id' ? [id] : [key, id]))
    }
    const order = field === 'id' ? `id ${direction}` : `${ordered} ${direction}, id ${direction}`
    const rows = db
      .prepare(
        `SELECT doc, ${ordered}, id FROM ${t.sql}${whereSql(parts)} ORDER BY ${order} LIMIT ?`,
      )
      .all(...bound, limit + 1)
    let [count, chars] = [0, 0]
    while (count < Math.min(rows.length, limit) && (count === 0 || chars < pageCharsMax))
      chars += (rows[count++]![0] as string).length
    const end = rows[count - 1]
    const next =
      count < rows.length && end
        ? encodeCursor(orderBy, { key: end[1]!, id: end[2] as string })
        : undefined
    return [next, ...rows.slice(0, count).map(([doc]) => doc as string)]
  }

  return {
    /** Returns nothing. A repeated call changes nothing. */
    define(at: number, spec: Collection): undefined {
      tables[at] = openTable(db, spec)
      specs[at] = spec
    },
    /** All collections as JSON, also those that an earlier program defined. */
    collections: () =>
      db
        .prepare('SELECT spec FROM collections ORDER BY name')
        .all()
        .map(([spec]) => spec as string),
    insert,
    /** Takes ids, documents and keys. Returns how many were inserted, and what stopped it. */
    insertMany(
      at: number,
      docs: readonly (readonly [string, string, readonly (Key | null)[]])[],
      keepGoing: (error: unknown) => boolean,
    ): [number, Failure?] {
      for (const [count, [id, json, keys]] of docs.entries()) {
        try {
          insert(at, id, json, keys)
        } catch (error) {
          if (!keepGoing(error)) throw error
          return [count, failureOf(error)]
        }
      }
      return [docs.length]
    },
    get,
    find,
    update,
    updateMany,
    remove,
    sweep,
    removeMany(at: number, where: string): number {
      const [t, bound] = [table(at), [] as SQLInputValue[]]
      return db
        .prepare(`DELETE FROM ${t.sql}${whereSql(filter(t, JSON.parse(where) as Where, bound))}`)
        .run(...bound)
    },
    count(at: number, where: string): number {
      const [t, bound] = [table(at), [] as SQLInputValue[]]
      return db
        .prepare(
          `SELECT count(*) FROM ${t.sql}${whereSql(filter(t, JSON.parse(where) as Where, bound))}`,
        )
        .get(...bound)![0] as number
    },
    /** Forgets tables that a lost transaction may have made. */
    forget: () => void tables.fill(undefined),
    refuse: (name: string) =>
      fault('UNAVAILABLE', { what: `The collection ${name}`, why: 'it was never defined' }),
  }
}
