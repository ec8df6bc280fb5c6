// Filters and orders for MongoDB with the port's meaning: scalars equal scalars only, and null
// counts as absent.
import type { Filter } from 'mongodb'
import type { Scalar, Where } from '#ports/storage.ts'
import { afterPrefix, type Key, type Place } from '../documents.ts'

/** `id` is MongoDB's `_id`. */
export type Stored = { _id: string; [field: string]: unknown }
type Condition = Filter<Stored>

const nameOf = (field: string) => (field === 'id' ? '_id' : field)
/** MongoDB looks into arrays; the port does not. */
const noArray = { $not: { $type: 'array' } }
const scalarTypes = ['string', 'number', 'bool']
const scalar = { $type: scalarTypes, ...noArray }
const isThere = (name: string): Condition =>
  ({
    $or: [{ [name]: { $type: 'array' } }, { [name]: { $exists: true, $not: { $type: 'null' } } }],
  }) as Condition

/**
 * Every comparison names its types. MongoDB uses a partial index only for a query that repeats the
 * condition of the index. It does not see that equality to a text implies a type
 * (https://www.mongodb.com/docs/manual/core/index-partial/#query-coverage).
 */
function within(name: string, operators: object): Condition {
  return { [name]: name === '_id' ? operators : { ...operators, ...scalar } } as Condition
}
function one(name: string, condition: Where[string]): Condition {
  if (typeof condition !== 'object') return within(name, { $eq: condition })
  if ('in' in condition) return within(name, { $in: condition.in })
  if ('exists' in condition)
    return condition.exists ? isThere(name) : ({ $nor: [isThere(name)] } as Condition)
  if ('prefix' in condition) {
    const end = afterPrefix(condition.prefix)
    return within(name, { $gte: condition.prefix, ...(end === undefined ? {} : { $lt: end }) })
  }
  const operators = Object.entries(condition).map(([operator, value]) => [
    `$${operator}`,
    value as Scalar,
  ])
  return within(name, Object.fromEntries(operators))
}
export const conditions = (where: Where = {}): Condition[] =>
  Object.entries(where).map(([field, condition]) => one(nameOf(field), condition))
export const all = (list: readonly Condition[]): Condition =>
  list.length === 0 ? {} : ({ $and: [...list] } as Condition)

/**
 * A cursor holds a boolean as 0 or 1. A field holds one type, so the wrong reading matches nothing.
 */
const readings = (key: Key): Scalar[] => (key === 0 || key === 1 ? [key, key === 1] : [key])
/** Documents that have the sorted field, and sort behind the position. */
export function behind(
  field: string,
  direction: 'asc' | 'desc',
  after: Place | undefined,
): Condition[] {
  const name = nameOf(field)
  const beyond = direction === 'asc' ? '$gt' : '$lt'
  if (name === '_id') return after ? [{ _id: { [beyond]: after.id } } as Condition] : []
  const places =
    after &&
    ({
      $or: readings(after.key).flatMap(key => [
        { [name]: { [beyond]: key } },
        { [name]: { $eq: key }, _id: { [beyond]: after.id } },
      ]),
    } as Condition)
  return [{ [name]: scalar } as Condition, ...(places ? [places] : [])]
}
export const sorting = (field: string, direction: 'asc' | 'desc'): Record<string, 1 | -1> => {
  const sign = direction === 'asc' ? 1 : -1
  return field === 'id' ? { _id: sign } : { [field]: sign, _id: sign }
}
/**
 * The partial condition of a unique index: documents in which a field is absent or null are left
 * out.
 */
export const complete = (fields: readonly string[]) =>
  Object.fromEntries(
    fields.filter(field => field !== 'id').map(field => [field, { $type: scalarTypes }]),
  )
