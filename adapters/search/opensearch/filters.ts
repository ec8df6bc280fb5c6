// Filters for OpenSearch, with the port's meaning. Names and types of values were checked before.
import type { Where } from '#ports/storage.ts'

type Clause = Readonly<Record<string, unknown>>
const nothing: Clause = { match_none: {} }

function one(field: string, condition: Where[string]): Clause {
  const name = field === 'id' ? 'id' : `fields.${field}`
  if (typeof condition !== 'object') return { term: { [name]: condition } }
  if ('in' in condition)
    return condition.in.length === 0 ? nothing : { terms: { [name]: condition.in } }
  if ('exists' in condition)
    return condition.exists
      ? { exists: { field: name } }
      : { bool: { must_not: { exists: { field: name } } } }
  if ('prefix' in condition)
    return condition.prefix === ''
      ? { exists: { field: name } }
      : { prefix: { [name]: { value: condition.prefix } } }
  return { range: { [name]: condition } }
}
export const conditions = (where: Where): Clause[] =>
  Object.entries(where).map(([field, condition]) => one(field, condition))
export const matching = (where: Where): Clause => ({ bool: { filter: conditions(where) } })
