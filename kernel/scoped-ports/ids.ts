// Ids and unique keys lie within an organisation: under the same id, two organisations have two
// documents and know nothing of each other.
import type { Collection, Doc, Where } from '#ports/storage.ts'

/** In the storage the organisation stands before the id. No id began with this sign before. */
const sign = '@'
const before = (orgId: string) => `${sign}${orgId}/`
type Named = Pick<Collection, 'scope' | 'global'>

/** Does the storage hold its documents under ids with the organisation in them? */
export const isWithin = ({ scope, global }: Named): boolean => scope === 'tenant' && global !== true
export const keptId = (collection: Named, orgId: string, id: string): string =>
  isWithin(collection) ? before(orgId) + id : id
export const isPlaced = ({ id, orgId }: Doc & { readonly orgId?: unknown }): boolean =>
  id.startsWith(before(String(orgId)))
/** Whatever lies within some organisation. */
export const placedIds: Where = { id: { prefix: sign } }

/** As it is given to the storage. */
export const kept = <D extends Doc>(collection: Named, orgId: string, doc: D): D =>
  isWithin(collection) && typeof doc.id === 'string' && doc.id !== ''
    ? { ...doc, id: before(orgId) + doc.id }
    : doc
/** As its owner knows it. */
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

/** Unique keys to which the organisation was added. */
const widened = ({ scope, unique = [] }: Collection) =>
  scope === 'tenant' ? unique.filter(fields => !fields.includes('orgId')) : []
/** The declaration as the storage is told it. */
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
