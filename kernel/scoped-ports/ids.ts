// Ids and unique keys lie within an organisation. Two organisations can use the same id for two
// documents, and neither sees the other's.
import type { Collection, Doc, Where } from '#ports/storage.ts'

/** Begins a stored id, in front of the organisation. Ids of older versions never begin with it. */
const sign = '@'
const before = (orgId: string) => `${sign}${orgId}/`
type Named = Pick<Collection, 'scope' | 'global'>

/** True when the stored ids contain the organisation. */
export const isWithin = ({ scope, global }: Named): boolean => scope === 'tenant' && global !== true
export const keptId = (collection: Named, orgId: string, id: string): string =>
  isWithin(collection) ? before(orgId) + id : id
export const isPlaced = ({ id, orgId }: Doc & { readonly orgId?: unknown }): boolean =>
  id.startsWith(before(String(orgId)))
/** Matches every id that contains an organisation. */
export const placedIds: Where = { id: { prefix: sign } }

/** The document as the storage holds it. */
export const kept = <D extends Doc>(collection: Named, orgId: string, doc: D): D =>
  isWithin(collection) && typeof doc.id === 'string' && doc.id !== ''
    ? { ...doc, id: before(orgId) + doc.id }
    : doc
/** The document as its owner knows it. */
export function given<D extends Doc>(collection: Named, doc: D): D {
  const { orgId } = doc as D & { readonly orgId?: unknown }
  return isWithin(collection) && isPlaced(doc)
    ? { ...doc, id: doc.id.slice(before(String(orgId)).length) }
    : doc
}

type Condition = Where[string]
function keptCondition(collection: Named, orgId: string, condition: Condition): Condition {
  const one = <T>(value: T): T =>
    typeof value === 'string' ? (keptId(collection, orgId, value) as T) : value
  if (typeof condition !== 'object' || condition === null) return one(condition)
  return Object.fromEntries(
    Object.entries(condition).map(([operator, value]) => [
      operator,
      Array.isArray(value) ? value.map(one) : one(value as unknown),
    ]),
  ) as Condition
}
export const keptWhere = (collection: Named, orgId: string, where: Where): Where =>
  'id' in where && isWithin(collection)
    ? { ...where, id: keptCondition(collection, orgId, where['id']!) }
    : where

/** The unique keys, with the organisation added. */
const widened = ({ scope, unique = [] }: Collection) =>
  scope === 'tenant' ? unique.filter(fields => !fields.includes('orgId')) : []
/** The declaration that the storage gets. */
export function inStorage({ globallyUnique = [], ...collection }: Collection): Collection {
  const added = new Set(widened(collection))
  const unique = [
    ...(collection.unique ?? []).map(fields => (added.has(fields) ? ['orgId', ...fields] : fields)),
    ...globallyUnique,
  ]
  return {
    ...collection,
    ...(unique.length > 0 ? { unique } : {}),
    ...(isWithin(collection) ? { ids: 'organisation' as const } : {}),
  }
}
/** The names of a key's fields, as its owner declared them. */
export const declaredFields = (collection: Collection, fields: string): string =>
  widened(collection).some(one => `orgId, ${one.join(', ')}` === fields)
    ? fields.slice('orgId, '.length)
    : fields
