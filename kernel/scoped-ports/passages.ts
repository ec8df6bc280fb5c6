// Collections of passages, named within an organisation and within the plugin that owns them.
import { fault } from '#contracts/faults.ts'
import type { Passages, ScopedSearch, SearchEngine } from '#ports/search.ts'
import type { Plugin } from '../plugin.ts'
import { orgOf } from './organisation.ts'
import { sharedPassages } from './shared-search.ts'

/** Without a plugin: every collection of an organisation, by the engine's names. */
export function scopeSearch(
  engine: SearchEngine,
  plugin?: Pick<Plugin, 'name' | 'names'>,
): ScopedSearch {
  const prefix = plugin && plugin.names !== 'unprefixed' ? `${plugin.name}/` : ''
  const named = (collection: string): string => {
    if (collection === '') throw fault('INVALID_FIELD', { field: 'collection', why: 'has no name' })
    return prefix + collection
  }
  const own = (all: Passages): Passages => ({
    define: async (collection, spec) => all.define(named(collection), spec),
    drop: async collection => all.drop(named(collection)),
    collections: async () =>
      (await all.collections())
        .filter(name => name.startsWith(prefix))
        .map(name => name.slice(prefix.length)),
    index: async (collection, passages, options) => all.index(named(collection), passages, options),
    remove: async (collection, which) => all.remove(named(collection), which),
    query: async (collection, query) => all.query(named(collection), query),
    match: async (collection, query) => all.match(named(collection), query),
    count: async (collection, where) => all.count(named(collection), where),
  })
  const within = (id: string) => (prefix === '' ? engine.within(id) : own(engine.within(id)))
  return {
    tenant: scope => within(orgOf(scope)),
    shared: scope => sharedPassages(within, orgOf(scope)),
  }
}
