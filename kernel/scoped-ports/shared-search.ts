// One index for all organisations. Each id begins with its organisation, which is added here to
// everything that is written or queried.
import { fault } from '#contracts/faults.ts'
import { searchLimits, type Passages, type SharedPassages } from '#ports/search.ts'
import type { Where } from '#ports/storage.ts'

/** Stands in place of an organisation's id. No organisation has it, because theirs are UUIDs. */
const everybody = 'shared'

/** `within` answers the collections of an organisation's id. */
export function sharedPassages(within: (id: string) => Passages, orgId: string): SharedPassages {
  const all = within(everybody)
  const home = `${orgId}/`
  const idBytesMax = searchLimits.idBytesMax - home.length
  const stamped = (id: string): string => {
    if (typeof id !== 'string' || Buffer.byteLength(id) > idBytesMax)
      throw fault('INVALID_FIELD', {
        field: 'id',
        why: `must be a text of at most ${idBytesMax} bytes`,
      })
    return home + id
  }
  const own = ({ id, ...rest }: Where = {}): Where => {
    if (id === undefined) return { ...rest, id: { prefix: home } }
    if (typeof id === 'string') return { ...rest, id: stamped(id) }
    if (typeof id === 'object' && 'in' in id)
      return { ...rest, id: { in: id.in.map(one => stamped(one as string)) } }
    if (typeof id === 'object' && 'prefix' in id)
      return { ...rest, id: { prefix: stamped(id.prefix) } }
    throw fault('INVALID_FIELD', { field: 'id', why: 'is asked for as it is, by in, or by prefix' })
  }
  const bare = <T extends { readonly id: string }>(one: T): T => ({
    ...one,
    id: one.id.slice(home.length),
  })
  return {
    define: (collection, spec) => all.define(collection, spec),
    async index(collection, passages, options) {
      const { indexed, errors } = await all.index(
        collection,
        passages.map(passage => ({ ...passage, id: stamped(passage.id) })),
        options,
      )
      return { indexed, errors: errors.map(bare) }
    },
    remove: async (collection, which) =>
      all.remove(
        collection,
        'ids' in which ? { ids: which.ids.map(stamped) } : { where: own(which.where) },
      ),
    async match(collection, { where, before, ...query }) {
      const { hits, more } = await all.match(collection, {
        ...query,
        where: own(where),
        ...(before === undefined ? {} : { before: stamped(before) }),
      })
      return { hits: hits.map(bare), more }
    },
    count: async (collection, where) => all.count(collection, own(where)),
  }
}
