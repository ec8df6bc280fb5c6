// Which index MongoDB may use for a query, by its documented rules: a compatible server does not
// show it.
//   prefixes and order: https://www.mongodb.com/docs/manual/tutorial/sort-results-with-indexes/
//   partial indexes:    https://www.mongodb.com/docs/manual/core/index-partial/#query-coverage
import { isDeepStrictEqual } from 'node:util'

export type IndexSpec = {
  readonly name: string
  readonly key: Readonly<Record<string, unknown>>
  readonly partialFilterExpression?: object
}
type Operators = Readonly<Record<string, unknown>>

/**
 * The conditions on each field; those within $or and $nor narrow nothing that an index could serve.
 */
function conditionsOf(filter: Operators): Map<string, Operators> {
  const found = new Map<string, Operators>()
  const parts = (filter['$and'] as Operators[] | undefined) ?? [filter]
  for (const part of parts) {
    for (const [field, operators] of Object.entries(part)) {
      if (!field.startsWith('$'))
        found.set(field, { ...found.get(field), ...(operators as Operators) })
    }
  }
  return found
}
const isEqual = (operators: Operators | undefined): boolean =>
  operators !== undefined && ('$eq' in operators || '$in' in operators)
const ranges = ['$gt', '$gte', '$lt', '$lte', '$type'] as const
const isNarrowed = (operators: Operators | undefined): boolean =>
  operators !== undefined && ranges.some(name => name in operators)

/**
 * A query that leaves out the index's condition might miss documents: the condition must stand in
 * the query.
 */
const covers = (
  { partialFilterExpression = {} }: IndexSpec,
  conditions: Map<string, Operators>,
): boolean =>
  Object.entries(partialFilterExpression).every(([field, wanted]) =>
    Object.entries(wanted as object).every(([operator, value]) =>
      isDeepStrictEqual(conditions.get(field)?.[operator], value),
    ),
  )

/**
 * True when the index narrows the query by its first fields and gives it in its order, without a
 * sort in memory.
 */
export function serves(
  index: IndexSpec,
  filter: Operators,
  sort: Readonly<Record<string, 1 | -1>>,
): boolean {
  const conditions = conditionsOf(filter)
  const fields = Object.keys(index.key)
  if (!covers(index, conditions)) return false
  let equal = 0
  while (equal < fields.length && isEqual(conditions.get(fields[equal]!))) equal++
  // Of a unique key that is given whole there is one document: its order is any order.
  if (equal === fields.length) return true
  const order = Object.keys(sort).filter(field => !fields.slice(0, equal).includes(field))
  const rest = fields.slice(equal, equal + order.length)
  if (order.length > 0)
    return isDeepStrictEqual(order, rest) && (equal > 0 || isNarrowed(conditions.get(rest[0]!)))
  return equal > 0 || isNarrowed(conditions.get(fields[0]!))
}
