// Filters and orders as SQL. Names were checked; values are always bound.
import type { SQLInputValue } from 'node:sqlite'
import type { Scalar, Where } from '#ports/storage.ts'
import { afterPrefix, keyOf, type Key } from '../documents.ts'

/** Whether the collection keeps a column of its own for the field. */
export type HasColumn = (field: string) => boolean
type Bound = SQLInputValue[]

/** What SQL compares for a field: its column, or the value within the document. */
export const expression = (field: string, has: HasColumn): string =>
  field === 'id' ? 'id' : has(field) ? `"f_${field}"` : `json_extract(doc, '$.${field}')`

/**
 * JSON's types that compare with a value of this type; a column needs no check, it holds one type.
 */
const typesOf = (value: Scalar): string =>
  typeof value === 'string'
    ? `'text'`
    : typeof value === 'number'
      ? `'integer', 'real'`
      : `'true', 'false'`
const typeOf = (field: string) => `json_type(doc, '$.${field}')`
const inColumn = (field: string, has: HasColumn) => field === 'id' || has(field)

function compare(
  field: string,
  operator: string,
  value: Scalar,
  has: HasColumn,
  bound: Bound,
): string {
  bound.push(keyOf(value))
  const test = `${expression(field, has)} ${operator} ?`
  return inColumn(field, has) ? test : `(${test} AND ${typeOf(field)} IN (${typesOf(value)}))`
}

function among(field: string, values: readonly Scalar[], has: HasColumn, bound: Bound): string {
  if (inColumn(field, has)) {
    bound.push(JSON.stringify(values.map(keyOf)))
    return `${expression(field, has)} IN (SELECT value FROM json_each(?))`
  }
  const kinds = (['string', 'number', 'boolean'] as const)
    .map(kind => values.filter(value => typeof value === kind))
    .filter(same => same.length > 0)
  const parts = kinds.map(same => {
    bound.push(JSON.stringify(same.map(keyOf)))
    return (
      `(${expression(field, has)} IN (SELECT value FROM json_each(?)) AND ${typeOf(field)} ` +
      `IN (${typesOf(same[0]!)}))`
    )
  })
  return parts.length === 0 ? '0' : `(${parts.join(' OR ')})`
}

function startsWith(field: string, prefix: string, has: HasColumn, bound: Bound): string {
  const after = afterPrefix(prefix)
  const from = compare(field, '>=', prefix, has, bound)
  return after === undefined ? from : `${from} AND ${compare(field, '<', after, has, bound)}`
}

const signs = { gt: '>', gte: '>=', lt: '<', lte: '<=' } as const

function one(field: string, condition: Where[string], has: HasColumn, bound: Bound): string {
  if (typeof condition !== 'object') return compare(field, '=', condition, has, bound)
  if ('in' in condition) return among(field, condition.in, has, bound)
  if ('prefix' in condition) return startsWith(field, condition.prefix, has, bound)
  if ('exists' in condition) {
    const present = inColumn(field, has)
      ? `${expression(field, has)} IS NOT NULL`
      : `coalesce(${typeOf(field)}, 'null') <> 'null'`
    return condition.exists ? present : `NOT (${present})`
  }
  return Object.entries(condition)
    .map(([name, value]) =>
      compare(field, signs[name as keyof typeof signs], value as Scalar, has, bound),
    )
    .join(' AND ')
}

const namesIds = ({ id }: Where): boolean =>
  typeof id === 'string' || (typeof id === 'object' && 'in' in id)
/** A column behind a unary plus takes no index (https://sqlite.org/optoverview.html, section 4). */
const withoutIndex = (condition: string): string => condition.replaceAll('"f_', '+"f_')

/**
 * The filter as SQL conditions; pushes their values. Documents named by ids are found by id. By an
 * index of another field, SQLite would read all documents of an organisation.
 */
export function conditions(where: Where, has: HasColumn, bound: Bound): string[] {
  const byId = namesIds(where)
  return Object.keys(where).map(field => {
    const condition = one(field, where[field]!, has, bound)
    return byId && field !== 'id' ? withoutIndex(condition) : condition
  })
}

/** Only documents that have the field take a place in its order. */
export const present = (field: string, has: HasColumn): string =>
  inColumn(field, has)
    ? `${expression(field, has)} IS NOT NULL`
    : `${typeOf(field)} IN ('text', 'integer', 'real', 'true', 'false')`

/** What a column is filled with from a document that was written before the column existed. */
export const extracted = (field: string): string =>
  `CASE ${typeOf(field)} WHEN 'true' THEN 1 WHEN 'false' THEN 0 WHEN 'text' THEN ` +
  `json_extract(doc, '$.${field}') WHEN 'integer' THEN json_extract(doc, '$.${field}') ` +
  `WHEN 'real' THEN json_extract(doc, '$.${field}') END`

export const keysOf = (
  doc: Readonly<Record<string, unknown>>,
  fields: readonly string[],
): (Key | null)[] => fields.map(field => keyOf(doc[field]))
