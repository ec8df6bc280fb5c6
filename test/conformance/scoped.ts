// The scoped faces of the ports, dressed as engines, so that a kit can be run a second time within
// one organisation of two.
import assert from 'node:assert/strict'
import type { Blobs, BlobsEngine } from '#ports/blobs.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import type { SearchEngine } from '#ports/search.ts'
import type { Collection, Doc, StorageEngine } from '#ports/storage.ts'
import { defineCollection } from '../../kernel/scoped-ports/define.ts'
import { scopeBlobs } from '../../kernel/scoped-ports/face.ts'
import { scopeEventlog } from '../../kernel/scoped-ports/streams.ts'
import { scopeSearch } from '../../kernel/scoped-ports/passages.ts'
import { tenantStore } from '../../kernel/scoped-ports/storage.ts'

const [ours, theirs] = [
  '00000000-0000-7000-8000-00000000000a',
  '00000000-0000-7000-8000-00000000000b',
]
/** What the stamp adds to a document: `,"orgId":"…"`. */
const stampBytes = `,"orgId":"${ours}"`.length
/** What its organisation adds to its id: `@…/`. */
const placeBytes = `@${ours}/`.length

const asTenants = <D extends Doc>(collection: Collection<D>): Collection<D> => ({
  ...collection,
  scope: 'tenant',
})
/** `free` is the field that the kit makes unique later, when it has corrected its own documents. */
const plain = (doc: Doc): Doc => {
  const { free: _, ...rest } = doc as Doc & { free?: unknown }
  return rest
}
const bare = <D extends Doc>(doc: D): D => {
  const { orgId: _, ...rest } = doc as D & { orgId?: string }
  return rest as unknown as D
}
/**
 * Every write is made in another organisation too, under the same id and the same unique keys: its
 * rows must never be seen, counted, changed or in the way.
 */
export function scopedStorage(engine: StorageEngine): StorageEngine {
  const store = tenantStore(engine, ours, () => undefined)
  const other = tenantStore(engine, theirs, () => undefined)
  const shadow = <D extends Doc>(c: Collection<D>, doc: D) =>
    typeof doc.id === 'string' && doc.id
      ? other.insert(asTenants(c), plain(doc) as D).catch(() => undefined)
      : undefined
  return {
    limits: { documentBytesMax: engine.limits.documentBytesMax - stampBytes - placeBytes },
    exclusive: engine.exclusive,
    define: c => defineCollection(engine, asTenants(c)),
    collections: async () =>
      (await engine.collections()).map(({ ids: _, ...c }) => ({
        ...c,
        scope: 'platform',
        ...(c.unique
          ? { unique: c.unique.map(fields => fields.filter(field => field !== 'orgId')) }
          : {}),
      })),
    durable: () => engine.durable(),
    ping: () => engine.ping(),
    close: () => engine.close(),
    ...(engine.epoch ? { epoch: () => engine.epoch!() } : {}),
    insert: async (c, doc) => {
      await store.insert(asTenants(c), doc)
      await shadow(c, doc)
    },
    async insertMany(c, docs) {
      const { inserted, error } = await store.insertMany(asTenants(c), docs)
      await Promise.all(docs.slice(0, inserted).map(doc => shadow(c, doc)))
      return { inserted, ...(error ? { error } : {}) }
    },
    get: async (c, id) => {
      const doc = await store.get(asTenants(c), id)
      return doc && bare(doc)
    },
    find: async (c, query) => {
      const { items, ...rest } = await store.find(asTenants(c), query)
      return { items: items.map(bare), ...rest }
    },
    update: async (c, id, change, options) => {
      const doc = await store.update(asTenants(c), id, change, options)
      return doc && bare(doc)
    },
    updateMany: (c, where, change) => store.updateMany(asTenants(c), where, change),
    remove: (c, id, options) => store.remove(asTenants(c), id, options),
    removeMany: (c, where) => store.removeMany(asTenants(c), where),
    count: (c, where) => store.count(asTenants(c), where),
  }
}

const kit = { name: 'kit' }
const within = `${ours}/${kit.name}/`
/** The same names are written in another organisation too. */
export function scopedEventlog(engine: EventlogEngine): EventlogEngine {
  const log = scopeEventlog(engine, kit).tenant({ orgId: ours })
  const other = scopeEventlog(engine, kit).tenant({ orgId: theirs })
  return {
    ...log,
    limits: { ...engine.limits, streamNameMax: engine.limits.streamNameMax - within.length },
    async append(stream, events, options) {
      const last = await log.append(stream, events, options)
      await other.append(stream, [{ type: 'shadow', data: null }]).catch(() => undefined)
      return last
    },
    // Whoever lists and restores streams does so beneath all organisations.
    streams: async ({ after, limit }) =>
      (await engine.streams({ after: `${within}${after ?? ''}`, limit }))
        .filter(name => name.startsWith(within))
        .map(name => name.slice(within.length)),
    restore: (stream, after, events) => engine.restore(`${within}${stream}`, after, events),
    durable: () => engine.durable(),
    ping: () => engine.ping(),
    close: () => engine.close(),
    ...(engine.epoch ? { epoch: () => engine.epoch!() } : {}),
  }
}

/** Pages of what others than this organisation have. */
const without =
  ({ addresses }: Pick<BlobsEngine, 'addresses'>, orgId: string): BlobsEngine['addresses'] =>
  async ({ after, limit }) => {
    const found: string[] = []
    for (let from = after; found.length < limit; ) {
      const page = await addresses({ ...(from === undefined ? {} : { after: from }), limit })
      found.push(...page.filter(address => !address.startsWith(orgId)))
      from = page.at(-1)
      if (page.length < limit) break
    }
    return found.slice(0, limit)
  }

/**
 * What is put is put in another organisation too: its bytes must keep nothing alive and be nobody
 * else's. A name that is no organisation's never reaches the engine.
 */
export function scopedBlobs(engine: BlobsEngine): BlobsEngine {
  const { tenant } = scopeBlobs(engine)
  const shadowed = (blobs: Blobs): Blobs => ({
    ...blobs,
    async put(content, options) {
      const blob = await blobs.put(content, options)
      await tenant({ orgId: theirs })
        .put(blobs.get(blob.hash))
        .catch(() => undefined)
      return blob
    },
  })
  return {
    within(orgId) {
      if (/^[0-9a-f-]{36}$/.test(orgId)) return shadowed(tenant({ orgId }))
      assert.throws(() => tenant({ orgId }), /without an organisation/)
      return engine.within(orgId)
    },
    addresses: without(engine, theirs),
    ping: () => engine.ping(),
    close: () => engine.close(),
  }
}

/**
 * What is indexed in one organisation's collection is indexed in another's too, with more that
 * would be in the way of everything: it must be nowhere.
 */
export function scopedSearch(engine: SearchEngine): SearchEngine {
  const { tenant } = scopeSearch(engine)
  const shadow = '00000000-0000-7000-8000-0000000000ff'
  return {
    within(orgId) {
      if (!/^[0-9a-f-]{36}$/.test(orgId)) {
        assert.throws(() => tenant({ orgId }), /without an organisation/)
        return engine.within(orgId)
      }
      const own = tenant({ orgId })
      const other = tenant({ orgId: shadow })
      return {
        ...own,
        async define(collection, spec) {
          await own.define(collection, spec)
          await other.define(collection, spec)
        },
        async index(collection, passages, options) {
          const indexed = await own.index(collection, passages, options)
          await other
            .index(
              collection,
              passages.map(passage => ({
                ...passage,
                id: `shadow-${passage.id}`,
                text: `${passage.text} ${passage.text}`,
              })),
            )
            .catch(() => undefined)
          return indexed
        },
      }
    },
    addresses: without(engine, shadow),
    contents: (...asked) => engine.contents(...asked),
    ping: () => engine.ping(),
    close: () => engine.close(),
  }
}
