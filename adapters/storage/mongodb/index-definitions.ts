// Which indexes a collection needs, and how two of them compare.
import { isDeepStrictEqual } from 'node:util'
import type { Collection, Where } from '#ports/storage.ts'
import { complete, sorting } from '../../_shared/mongodb/filters.ts'

export type Index = {
  readonly name: string
  readonly key: Readonly<Record<string, unknown>>
  readonly unique?: boolean
  readonly partialFilterExpression?: object
}

export function indexesOf({
  unique = [],
  index = [],
  scope,
  expires,
}: Collection): readonly Index[] {
  const key = (fields: readonly string[]) =>
    Object.fromEntries(fields.map(field => [field === 'id' ? '_id' : field, 1 as const]))
  const others = [...index, ...(expires === undefined ? [] : [[expires]])]
  // A unique index is partial, and serves no query that names the organisation alone.
  if (scope === 'tenant' && !others.some(([first]) => first === 'orgId')) others.push(['orgId'])
  const all = [
    ...unique.map(fields => ({
      name: `u_${fields.join('_')}`,
      key: key(fields),
      unique: true,
      partialFilterExpression: complete(fields),
    })),
    ...others.map(fields => ({
      name: `i_${fields.join('_')}`,
      key: key([...new Set([...fields, 'id'])]),
    })),
  ]
  return [...new Map(all.map(one => [one.name, one])).values()]
}

/**
 * Sorts by the field, then by id. If a unique key is given except for this field, no two documents
 * have the same value of the field. That key's index does not end with the id, so it gives the
 * order only when the id is left out.
 */
export function sortOf(
  spec: Collection,
  where: Where | undefined,
  [field, direction]: readonly [string, 'asc' | 'desc'],
): Record<string, 1 | -1> {
  const given = Object.entries(where ?? {})
    .filter(([, condition]) => typeof condition !== 'object')
    .map(([name]) => name)
  const isUnique = (spec.unique ?? []).some(
    key => key.includes(field) && key.every(name => name === field || given.includes(name)),
  )
  return isUnique ? { [field]: direction === 'asc' ? 1 : -1 } : sorting(field, direction)
}

export const isOurs = ({ name }: Index) => /^[ui]_/.test(name)
export const hasKeyOf = (a: Index, b: Index) =>
  isDeepStrictEqual(Object.entries(a.key), Object.entries(b.key))
/** Compares without the name: an index that an operator made under another name will do. */
export const isSame = (a: Index, b: Index) =>
  hasKeyOf(a, b) &&
  (a.unique === true) === (b.unique === true) &&
  isDeepStrictEqual(a.partialFilterExpression ?? {}, b.partialFilterExpression ?? {})
