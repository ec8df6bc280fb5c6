// Shared rules of all storage adapters: names, filters, changes, order, cursors. Pure functions.
import { fault } from '#contracts/faults.ts'
import type { Change, Collection, Doc, Query, Scalar, Where } from '#ports/storage.ts'

export type Fields = Record<string, unknown>
/** A scalar as indexes and cursors hold it. SQLite has no booleans. */
export type Key = string | number

export const documentBytesMax = 1024 * 1024
export const limitMax = 1000
export const limitDefault = 50

const namePattern = /^[a-z][a-zA-Z0-9_]*$/
const operators = {
  in: true,
  prefix: true,
  exists: true,
  gt: true,
  gte: true,
  lt: true,
  lte: true,
} as const
const isScalar = (value: unknown): value is Scalar =>
  typeof value === 'string' ||
  typeof value === 'boolean' ||
  (typeof value === 'number' && Number.isFinite(value))

/** Names become parts of SQL statements, so only plain names are allowed. */
export function checkName(name: string, field = name): void {
  if (!namePattern.test(name))
    throw fault('INVALID_FIELD', {
      field,
      why: 'a name is a lower-case letter, then letters, digits and underscores',
    })
}

export function checkCollection({
  name,
  unique = [],
  index = [],
  expires,
  owner,
}: Collection): void {
  checkName(name, 'collection')
  for (const field of [
    ...unique.flat(),
    ...index.flat(),
    ...(expires === undefined ? [] : [expires]),
    ...(owner === undefined ? [] : [owner]),
  ])
    checkName(field)
  // The name of an index consists of its fields, so of two equal names only one index would be
  // made.
  for (const [kind, lists] of Object.entries({ unique, index })) {
    const names = sameKeys(lists).map(list => list.join('_'))
    const twice = names.find((one, at) => names.indexOf(one) !== at)
    if (twice !== undefined) throw refuse(kind, `two lists of fields are both called ${twice}`)
  }
}

const sameKeys = (lists: readonly (readonly string[])[]) => [
  ...new Map(lists.map(list => [list.join(','), list])).values(),
]

/**
 * Joins two declarations, because an older generation of a plugin still runs while a newer one
 * starts.
 */
export const union = (a: Collection, b: Collection): Collection => ({
  ...a,
  ...b,
  unique: sameKeys([...(a.unique ?? []), ...(b.unique ?? [])]),
  index: sameKeys([...(a.index ?? []), ...(b.index ?? [])]),
})

/** Fields that an index, the expiry or the tenant's filter uses, in order of declaration. */
export const indexedFields = ({ unique = [], index = [], expires, scope }: Collection): string[] =>
  [
    ...new Set([
      ...(scope === 'tenant' ? ['orgId'] : []),
      ...unique.flat(),
      ...index.flat(),
      ...(expires === undefined ? [] : [expires]),
    ]),
  ].filter(field => field !== 'id')

const refuse = (field: string, why: string) => fault('INVALID_FIELD', { field, why })

function checkCondition(field: string, condition: unknown): void {
  if (isScalar(condition)) return
  // An undefined value would be dropped and match everything, so it is refused.
  if (typeof condition !== 'object' || condition === null || Array.isArray(condition))
    throw refuse(field, 'a condition is a scalar or an operator')
  const names = Object.keys(condition)
  const values = condition as Record<string, unknown>
  if (names.length === 0 || names.some(name => !(name in operators)))
    throw refuse(field, 'an unknown operator')
  if (
    names.length > 1 &&
    names.some(name => name === 'in' || name === 'prefix' || name === 'exists')
  )
    throw refuse(field, 'only ranges combine')
  for (const name of names) {
    const value = values[name]
    const right =
      name === 'in'
        ? Array.isArray(value) && value.every(isScalar)
        : name === 'prefix'
          ? typeof value === 'string'
          : name === 'exists'
            ? typeof value === 'boolean'
            : isScalar(value)
    if (!right) throw refuse(field, `${name} has the wrong kind of value`)
  }
}

export function checkWhere(where: Where): void {
  for (const field in where) {
    if (!namePattern.test(field)) checkName(field)
    checkCondition(field, where[field])
  }
}

export function checkChange(change: Change): void {
  for (const part of [change.set, change.inc, change.push, change.pull])
    for (const field in part) if (!namePattern.test(field)) checkName(field)
  for (const field of change.unset ?? []) checkName(field)
  for (const field in change.inc)
    if (!Number.isFinite(change.inc[field])) throw refuse(field, 'inc takes a number')
  for (const field in change.pull)
    if (!isScalar(change.pull[field])) throw refuse(field, 'pull takes a scalar')
}

export function checkQuery({ where, orderBy, limit }: Query): void {
  if (where) checkWhere(where)
  if (limit !== undefined && !(Number.isInteger(limit) && limit >= 1 && limit <= limitMax))
    throw refuse('limit', `a whole number from 1 to ${limitMax}`)
  if (!orderBy) return
  checkName(orderBy[0], 'orderBy')
  if (orderBy[1] !== 'asc' && orderBy[1] !== 'desc')
    throw refuse('orderBy', 'the direction is asc or desc')
}

export function checkDoc(collection: string, doc: Doc, json: string): void {
  if (typeof doc.id !== 'string' || doc.id === '')
    throw refuse('id', 'a document needs one, and it is a text')
  checkSize(collection, json)
}

/** Counts bytes only when the number of characters does not decide. */
export function checkSize(collection: string, json: string): void {
  if (json.length * 3 > documentBytesMax && Buffer.byteLength(json) > documentBytesMax)
    throw fault('DOCUMENT_TOO_LARGE', { collection, max: documentBytesMax })
}

/**
 * Compares strings by their UTF-8 bytes. JavaScript's order differs where surrogate pairs meet
 * U+E000 to U+FFFF.
 */
export function compareText(a: string, b: string): number {
  const length = Math.min(a.length, b.length)
  for (let at = 0; at < length; at++) {
    const [left, right] = [a.charCodeAt(at), b.charCodeAt(at)]
    if (left === right) continue
    const lift = (unit: number) => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit)
    return lift(left) - lift(right)
  }
  return a.length - b.length
}

/** The smallest text that sorts after every text with the prefix; undefined when there is none. */
export function afterPrefix(prefix: string): string | undefined {
  const points = Array.from(prefix, character => character.codePointAt(0)!)
  while (points.length > 0) {
    const last = points.pop()!
    if (last >= 0x10ffff) continue
    // Skips the surrogates, which are not characters: U+E000 follows U+D7FF.
    return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1)
  }
  return undefined
}

/**
 * The index key of a value. It is null for an absent value, for null, and for anything that is not
 * a scalar.
 */
export const keyOf = (value: unknown): Key | null =>
  typeof value === 'string' || typeof value === 'number'
    ? value
    : typeof value === 'boolean'
      ? Number(value)
      : null

/** Numbers sort before texts. */
export const compareKeys = (a: Key, b: Key): number =>
  typeof a === 'string'
    ? typeof b === 'string'
      ? compareText(a, b)
      : 1
    : typeof b === 'string'
      ? -1
      : a - b

const ranges = {
  gt: (order: number) => order > 0,
  gte: (order: number) => order >= 0,
  lt: (order: number) => order < 0,
  lte: (order: number) => order <= 0,
} as const

function satisfies(value: unknown, condition: Where[string]): boolean {
  if (typeof condition !== 'object') return value === condition
  if ('exists' in condition) return (value !== undefined && value !== null) === condition.exists
  if ('in' in condition) return condition.in.includes(value as Scalar)
  if ('prefix' in condition) return typeof value === 'string' && value.startsWith(condition.prefix)
  for (const name in condition) {
    const bound = condition[name as keyof typeof ranges]
    if (
      typeof value !== typeof bound ||
      !ranges[name as keyof typeof ranges](compareKeys(keyOf(value)!, keyOf(bound)!))
    )
      return false
  }
  return true
}

export function matches(doc: Fields, where: Where | undefined): boolean {
  for (const field in where) if (!satisfies(doc[field], where[field]!)) return false
  return true
}

/**
 * Applies the change to a copy; `id` stays. Arrays and objects inside are shared with the original
 * and never written to.
 */
export function applyChange(doc: Fields, { set, unset, inc, push, pull }: Change): Fields {
  const next: Fields = { ...doc, ...set }
  for (const field of unset ?? []) delete next[field]
  for (const field in inc) {
    const old = next[field] ?? 0
    if (typeof old !== 'number') throw refuse(field, 'inc needs a number')
    next[field] = old + inc[field]!
  }
  for (const field in push) {
    const old = next[field] ?? []
    if (!Array.isArray(old)) throw refuse(field, 'push needs an array')
    next[field] = [...old, push[field]]
  }
  for (const field in pull) {
    const old = next[field]
    if (Array.isArray(old)) next[field] = old.filter(item => item !== pull[field])
  }
  next['id'] = doc['id']
  return next
}

/** A position in an order: the key of the sorted field, and the id that breaks ties. */
export type Place = { readonly key: Key; readonly id: string }

export const encodeCursor = (
  [field, direction]: readonly [string, string],
  { key, id }: Place,
): string => Buffer.from(JSON.stringify([field, direction, key, id])).toString('base64url')

/** CURSOR_INVALID unless `encodeCursor` made it for the same order. */
export function decodeCursor([field, direction]: readonly [string, string], cursor: string): Place {
  const invalid = (why: string) => fault('CURSOR_INVALID', { field: 'cursor', why })
  let parts: unknown
  try {
    parts = JSON.parse(Buffer.from(cursor, 'base64url').toString())
  } catch (error) {
    throw fault(
      'CURSOR_INVALID',
      { field: 'cursor', why: 'not a cursor of this list' },
      { cause: error },
    )
  }
  if (!Array.isArray(parts) || parts.length !== 4) throw invalid('not a cursor of this list')
  const [ofField, ofDirection, key, id] = parts as unknown[]
  if (ofField !== field || ofDirection !== direction)
    throw invalid('it belongs to a list in another order')
  if ((typeof key !== 'string' && typeof key !== 'number') || typeof id !== 'string')
    throw invalid('not a cursor of this list')
  return { key, id }
}
