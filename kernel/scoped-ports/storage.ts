// Scoped storage: no query without an organisation, or without a declared reason to have none.
import { fault, hasCode } from '#contracts/faults.ts'
import type {
  Change,
  Collection,
  Doc,
  Page,
  Query,
  ScopedStorage,
  StorageEngine,
  Store,
  Where,
} from '#ports/storage.ts'
import type { Plugin } from '../plugin.ts'
import { declaredFields, given, isWithin, kept, keptId, keptWhere } from './ids.ts'
import { durabilityOf, latestOf, orgOf } from './organisation.ts'

/**
 * Answers the plugin's own declaration of the collection, whatever object was passed under its
 * name.
 */
type Guard = <D extends Doc>(collection: Collection<D>) => Collection<D> | void

/** Names the fields of a duplicate key as the plugin declared them. */
const toFault = (collection: Collection, error: unknown): unknown => {
  if (!hasCode(error, 'DUPLICATE')) return error
  const fields = String(error.values['fields'])
  const declared = declaredFields(collection, fields)
  return declared === fields ? error : fault('DUPLICATE', { fields: declared }, { cause: error })
}
const orFault = <T>(collection: Collection, work: Promise<T>): Promise<T> =>
  work.catch((error: unknown) => Promise.reject(toFault(collection, error)))
const givenDoc = <D extends Doc>(
  c: Collection<D>,
  work: Promise<D | undefined>,
): Promise<D | undefined> =>
  orFault(
    c,
    work.then(doc => doc && given(c, doc)),
  )
const givenPage = <D extends Doc>(c: Collection<D>, work: Promise<Page<D>>): Promise<Page<D>> =>
  isWithin(c) ? work.then(page => ({ ...page, items: page.items.map(doc => given(c, doc)) })) : work

/** A store that adds `orgId` to every write and every filter. */
export function tenantStore(engine: StorageEngine, orgId: string, check: Guard): Store {
  const guard = <D extends Doc>(handed: Collection<D>): Collection<D> => {
    const declared = check(handed) ?? handed
    if (declared.scope !== 'tenant')
      throw new Error(
        `The collection ${declared.name} belongs to no organisation; it is reached by ` +
          'store.system(why).',
      )
    return declared
  }
  const stamp = <D extends Doc>(c: Collection<D>, doc: D): D => {
    if ('orgId' in doc && doc.orgId !== orgId)
      throw new Error('A document of another organisation was handed in.')
    return kept(c, orgId, { ...doc, orgId })
  }
  const within = (c: Collection, where: Where = {}): Where => {
    if ('orgId' in where && where['orgId'] !== orgId)
      throw new Error('A filter names another organisation.')
    return keptWhere(c, orgId, { ...where, orgId })
  }
  const keep = (change: Change): Change => {
    for (const part of [change.set, change.inc, change.push, change.pull])
      if (part && 'orgId' in part) throw new Error('orgId never changes.')
    if (change.unset?.includes('orgId')) throw new Error('orgId never changes.')
    return change
  }
  return {
    insert: (handed, doc) => {
      const c = guard(handed)
      return orFault(c, engine.insert(c, stamp(c, doc)))
    },
    insertMany: async (handed, docs) => {
      const c = guard(handed)
      const { inserted, error } = await engine.insertMany(
        c,
        docs.map(doc => stamp(c, doc)),
      )
      return { inserted, ...(error ? { error: toFault(c, error) as Error } : {}) }
    },
    get: async (handed, id) => {
      const c = guard(handed)
      const doc = await engine.get(c, keptId(c, orgId, id))
      return doc && (doc as { orgId?: unknown }).orgId === orgId ? given(c, doc) : undefined
    },
    find: (handed, query) => {
      const c = guard(handed)
      return givenPage(c, engine.find(c, { ...query, where: within(c, query?.where) }))
    },
    update: (handed, id, change, options) => {
      const c = guard(handed)
      return givenDoc(
        c,
        engine.update(c, keptId(c, orgId, id), keep(change), { if: within(c, options?.if) }),
      )
    },
    updateMany: (handed, where, change) => {
      const c = guard(handed)
      return orFault(c, engine.updateMany(c, within(c, where), keep(change)))
    },
    remove: (handed, id, options) => {
      const c = guard(handed)
      return engine.remove(c, keptId(c, orgId, id), { if: within(c, options?.if) })
    },
    removeMany: (handed, where) => {
      const c = guard(handed)
      return engine.removeMany(c, within(c, where))
    },
    count: (handed, where) => {
      const c = guard(handed)
      return engine.count(c, within(c, where))
    },
  }
}

/**
 * A store across organisations, for one plugin's collections. A tenant's document must still name
 * its organisation, and so must a query by an id that lies within one.
 */
function systemStore(engine: StorageEngine, check: Guard): Store {
  const declared = <D extends Doc>(handed: Collection<D>) => check(handed) ?? handed
  const stamped = <D extends Doc>(c: Collection<D>, doc: D): D =>
    c.scope === 'tenant' ? kept(c, orgOf(doc as unknown as { orgId: string }), doc) : doc
  const addressed = (c: Collection, where: Where | undefined): string => {
    if (isWithin(c) && typeof where?.['orgId'] !== 'string')
      throw new Error(
        `An id of the collection ${c.name} lies within an organisation, and none is named.`,
      )
    return String(where?.['orgId'])
  }
  const within = (c: Collection, where: Where = {}): Where =>
    'id' in where ? keptWhere(c, addressed(c, where), where) : where
  return {
    insert: (handed, doc) => {
      const c = declared(handed)
      return orFault(c, engine.insert(c, stamped(c, doc)))
    },
    insertMany: async (handed, docs) => {
      const c = declared(handed)
      const { inserted, error } = await engine.insertMany(
        c,
        docs.map(doc => stamped(c, doc)),
      )
      return { inserted, ...(error ? { error: toFault(c, error) as Error } : {}) }
    },
    get: async (handed, id) => {
      const c = declared(handed)
      return engine.get(c, keptId(c, addressed(c, undefined), id))
    },
    find: (handed, query: Query = {}) => {
      const c = declared(handed)
      return givenPage(
        c,
        engine.find(c, query.where ? { ...query, where: within(c, query.where) } : query),
      )
    },
    update: (handed, id, change, options) => {
      const c = declared(handed)
      return givenDoc(
        c,
        engine.update(
          c,
          keptId(c, addressed(c, options?.if), id),
          change,
          options?.if && { if: within(c, options.if) },
        ),
      )
    },
    updateMany: (handed, where, change) => {
      const c = declared(handed)
      return orFault(c, engine.updateMany(c, within(c, where), change))
    },
    remove: (handed, id, options) => {
      const c = declared(handed)
      return engine.remove(
        c,
        keptId(c, addressed(c, options?.if), id),
        options?.if && { if: within(c, options.if) },
      )
    },
    removeMany: (handed, where) => {
      const c = declared(handed)
      return engine.removeMany(c, within(c, where))
    },
    count: (handed, where) => {
      const c = declared(handed)
      return engine.count(c, within(c, where))
    },
  }
}

/** The storage as one plugin sees it: its own collections, and the reasons that it declared. */
export function scopeStorage(
  engine: StorageEngine,
  plugin: Pick<Plugin, 'name' | 'collections' | 'system'>,
): ScopedStorage {
  const own = new Map(plugin.collections?.map(one => [one.name, one]))
  const check: Guard = <D extends Doc>({ name }: Collection<D>) => {
    const declared = own.get(name)
    if (!declared) throw new Error(`${plugin.name} does not declare the collection ${name}.`)
    return declared as unknown as Collection<D>
  }
  const system = systemStore(engine, check)
  return {
    exclusive: engine.exclusive,
    ...durabilityOf(engine),
    tenant: latestOf(orgId => tenantStore(engine, orgId, check)),
    system(why) {
      if (!plugin.system?.includes(why))
        throw new Error(`${plugin.name} does not declare why it looks across organisations: ${why}`)
      return system
    },
  }
}
