// Documents: no query without an organisation, or without a declared reason to go without.
import type { Change, Collection, Doc, ScopedStorage, StorageEngine, Store, Where } from '#ports/storage.ts'
import type { Plugin } from '../plugin.ts'
import { durabilityOf, orgOf } from './organisation.ts'

type Guard = (collection: Pick<Collection, 'name' | 'scope'>) => void

/** A store in which `orgId` is stamped on every write and stands in every filter. */
export function tenantStore(engine: StorageEngine, orgId: string, check: Guard): Store {
  const guard: Guard = collection => {
    check(collection)
    if (collection.scope !== 'tenant') throw new Error(`The collection ${collection.name} belongs to no organisation; it is reached by store.system(why).`)
  }
  const stamp = <D extends Doc>(doc: D): D => {
    if ('orgId' in doc && doc.orgId !== orgId) throw new Error('A document of another organisation was handed in.')
    return { ...doc, orgId }
  }
  const within = (where: Where = {}): Where => {
    if ('orgId' in where && where['orgId'] !== orgId) throw new Error('A filter names another organisation.')
    return { ...where, orgId }
  }
  const keep = (change: Change): Change => {
    for (const part of [change.set, change.inc, change.push, change.pull]) if (part && 'orgId' in part) throw new Error('orgId never changes.')
    if (change.unset?.includes('orgId')) throw new Error('orgId never changes.')
    return change
  }
  return {
    insert: (c, doc) => (guard(c), engine.insert(c, stamp(doc))),
    insertMany: (c, docs) => (guard(c), engine.insertMany(c, docs.map(stamp))),
    get: async (c, id) => {
      guard(c)
      const doc = await engine.get(c, id)
      return doc && (doc as { orgId?: unknown }).orgId === orgId ? doc : undefined
    },
    find: (c, query) => (guard(c), engine.find(c, { ...query, where: within(query?.where) })),
    update: (c, id, change, options) => (guard(c), engine.update(c, id, keep(change), { if: within(options?.if) })),
    updateMany: (c, where, change) => (guard(c), engine.updateMany(c, within(where), keep(change))),
    remove: (c, id, options) => (guard(c), engine.remove(c, id, { if: within(options?.if) })),
    removeMany: (c, where) => (guard(c), engine.removeMany(c, within(where))),
    count: (c, where) => (guard(c), engine.count(c, within(where))),
  }
}

/** A store across organisations, for one plugin's collections. What a tenant owns still names its organisation. */
function systemStore(engine: StorageEngine, check: Guard): Store {
  const methods = ['insert', 'insertMany', 'get', 'find', 'update', 'updateMany', 'remove', 'removeMany', 'count'] as const
  const call = (method: (typeof methods)[number]) => (collection: Collection, ...rest: unknown[]) => {
    check(collection)
    if (collection.scope === 'tenant' && method.startsWith('insert')) for (const doc of [rest[0]].flat()) orgOf(doc as { orgId: string })
    return (engine[method] as (...all: unknown[]) => unknown)(collection, ...rest)
  }
  return Object.fromEntries(methods.map(method => [method, call(method)])) as unknown as Store
}

/** What one plugin sees of the storage: its own collections, and the reasons that it declared. */
export function scopeStorage(engine: StorageEngine, plugin: Pick<Plugin, 'name' | 'collections' | 'system'>): ScopedStorage {
  const own = new Set(plugin.collections?.map(({ name }) => name))
  const check: Guard = ({ name }) => {
    if (!own.has(name)) throw new Error(`${plugin.name} does not declare the collection ${name}.`)
  }
  const system = systemStore(engine, check)
  return {
    exclusive: engine.exclusive,
    ...durabilityOf(engine),
    tenant: scope => tenantStore(engine, orgOf(scope), check),
    system(why) {
      if (!plugin.system?.includes(why)) throw new Error(`${plugin.name} does not declare why it looks across organisations: ${why}`)
      return system
    },
  }
}
