// Scoped storage: no query without an organisation, or without a declared reason to have none.
import { fault, hasCode } from '#contracts/faults.ts'
import type {
  Change,
  Collection,
  Doc,
  Page,
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

/** What a store makes of everything that it is handed. Each throws where it is not allowed. */
type Rules = {
  own<D extends Doc>(handed: Collection<D>): Collection<D>
  stamp<D extends Doc>(collection: Collection<D>, doc: D): D
  /** Undefined: everything. */
  where(collection: Collection, where: Where | undefined): Where | undefined
  id(collection: Collection, id: string, where: Where | undefined): string
  change(change: Change): Change
  isSeen(doc: Doc): boolean
}

/** Every write and every query passes the rules. */
function storeBy(engine: StorageEngine, rules: Rules): Store {
  const { own, stamp, where: whereOf, id: idOf, change: changeOf, isSeen } = rules
  const ifOf = (c: Collection, options: { readonly if?: Where } | undefined) => {
    const where = whereOf(c, options?.if)
    return where && { if: where }
  }
  const matching = (c: Collection, where: Where | undefined) => whereOf(c, where) ?? {}
  return {
    insert: (handed, doc) => {
      const c = own(handed)
      return orFault(c, engine.insert(c, stamp(c, doc)))
    },
    insertMany: async (handed, docs) => {
      const c = own(handed)
      const { inserted, error } = await engine.insertMany(
        c,
        docs.map(doc => stamp(c, doc)),
      )
      return { inserted, ...(error ? { error: toFault(c, error) as Error } : {}) }
    },
    get: async (handed, id) => {
      const c = own(handed)
      const doc = await engine.get(c, idOf(c, id, undefined))
      return doc && isSeen(doc) ? given(c, doc) : undefined
    },
    find: (handed, query = {}) => {
      const c = own(handed)
      const where = whereOf(c, query.where)
      return givenPage(c, engine.find(c, where ? { ...query, where } : query))
    },
    update: (handed, id, change, options) => {
      const c = own(handed)
      const placed = idOf(c, id, options?.if)
      return givenDoc(c, engine.update(c, placed, changeOf(change), ifOf(c, options)))
    },
    updateMany: (handed, where, change) => {
      const c = own(handed)
      return orFault(c, engine.updateMany(c, matching(c, where), changeOf(change)))
    },
    remove: (handed, id, options) => {
      const c = own(handed)
      return engine.remove(c, idOf(c, id, options?.if), ifOf(c, options))
    },
    removeMany: (handed, where) => {
      const c = own(handed)
      return engine.removeMany(c, matching(c, where))
    },
    count: (handed, where) => {
      const c = own(handed)
      return engine.count(c, matching(c, where))
    },
  }
}

/** A store that adds `orgId` to every write and every filter. */
export function tenantStore(engine: StorageEngine, orgId: string, check: Guard): Store {
  return storeBy(engine, {
    own: handed => {
      const declared = check(handed) ?? handed
      if (declared.scope !== 'tenant')
        throw new Error(
          `The collection ${declared.name} belongs to no organisation; it is reached by ` +
            'store.system(why).',
        )
      return declared
    },
    stamp: (c, doc) => {
      if ('orgId' in doc && doc.orgId !== orgId)
        throw new Error('A document of another organisation was handed in.')
      return kept(c, orgId, { ...doc, orgId })
    },
    where: (c, where = {}) => {
      if ('orgId' in where && where['orgId'] !== orgId)
        throw new Error('A filter names another organisation.')
      return keptWhere(c, orgId, { ...where, orgId })
    },
    id: (c, id) => keptId(c, orgId, id),
    change: change => {
      for (const part of [change.set, change.inc, change.push, change.pull])
        if (part && 'orgId' in part) throw new Error('orgId never changes.')
      if (change.unset?.includes('orgId')) throw new Error('orgId never changes.')
      return change
    },
    isSeen: doc => (doc as { orgId?: unknown }).orgId === orgId,
  })
}

/**
 * A store across organisations, for one plugin's collections. A tenant's document must still name
 * its organisation, and so must a query by an id that lies within one.
 */
function systemStore(engine: StorageEngine, check: Guard): Store {
  const addressed = (c: Collection, where: Where | undefined): string => {
    if (isWithin(c) && typeof where?.['orgId'] !== 'string')
      throw new Error(
        `An id of the collection ${c.name} lies within an organisation, and none is named.`,
      )
    return String(where?.['orgId'])
  }
  return storeBy(engine, {
    own: handed => check(handed) ?? handed,
    stamp: (c, doc) =>
      c.scope === 'tenant' ? kept(c, orgOf(doc as unknown as { orgId: string }), doc) : doc,
    where: (c, where) =>
      where && 'id' in where ? keptWhere(c, addressed(c, where), where) : where,
    id: (c, id, where) => keptId(c, addressed(c, where), id),
    change: change => change,
    isSeen: () => true,
  })
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
