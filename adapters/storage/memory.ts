// Documents in memory, for tests and simulations. They behave as on disk, and are gone afterwards.
import { fault } from '#contracts/faults.ts'
import { defineAdapter } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Collection, Doc, Query, StorageEngine, Where } from '#ports/storage.ts'
import {
  applyChange,
  checkChange,
  checkCollection,
  checkDoc,
  checkQuery,
  checkSize,
  checkWhere,
  compareKeys,
  decodeCursor,
  documentBytesMax,
  encodeCursor,
  keyOf,
  limitDefault,
  matches,
  union,
  type Fields,
  type Key,
} from '../_shared/documents.ts'

type Unique = { readonly fields: readonly string[]; readonly taken: Map<string, string> }
type Table = {
  readonly name: string
  spec: Collection
  expires: string | undefined
  readonly docs: Map<string, Fields>
  readonly uniques: Unique[]
}

const copy = <T>(value: unknown): T => JSON.parse(JSON.stringify(value)) as T

/**
 * The document's key in a unique index. Undefined where a field is absent: such a document is not
 * in the index.
 */
function uniqueKey(doc: Fields, fields: readonly string[]): string | undefined {
  const keys = fields.map(field => keyOf(doc[field]))
  return keys.includes(null) ? undefined : JSON.stringify(keys)
}

/** Replaces the document with this id. DUPLICATE leaves everything as it was. */
function put(table: Table, id: string, next: Fields | undefined): void {
  const old = table.docs.get(id)
  for (const { fields, taken } of next ? table.uniques : []) {
    const key = uniqueKey(next!, fields)
    const by = key === undefined ? undefined : taken.get(key)
    if (by !== undefined && by !== id) throw fault('DUPLICATE', { fields: fields.join(', ') })
  }
  for (const { fields, taken } of table.uniques) {
    const [before, after] = [old && uniqueKey(old, fields), next && uniqueKey(next, fields)]
    if (before !== undefined) taken.delete(before)
    if (after !== undefined) taken.set(after, id)
  }
  if (next) table.docs.set(id, next)
  else table.docs.delete(id)
}

function define(tables: Map<string, Table>, spec: Collection): void {
  const { name, unique = [], expires } = spec
  const known = tables.get(name)
  const table: Table = known ?? { name, spec, expires, docs: new Map(), uniques: [] }
  for (const fields of unique) {
    if (table.uniques.some(constraint => constraint.fields.join() === fields.join())) continue
    const taken = new Map<string, string>()
    for (const [id, doc] of table.docs) {
      const key = uniqueKey(doc, fields)
      if (key === undefined) continue
      if (taken.has(key)) throw fault('DUPLICATE', { fields: fields.join(', ') })
      taken.set(key, id)
    }
    table.uniques.push({ fields, taken })
  }
  if (known) table.spec = union(known.spec, spec)
  table.expires = expires ?? table.expires
  tables.set(name, table)
}

function page(
  seen: Iterable<Fields>,
  { where, orderBy = ['id', 'asc'], limit = limitDefault, after }: Query,
) {
  const [field, direction] = orderBy
  const sign = direction === 'asc' ? 1 : -1
  const place = (doc: Fields) => ({ key: keyOf(doc[field]) as Key, id: doc['id'] as string, doc })
  type Placed = ReturnType<typeof place>
  const compare = (a: Omit<Placed, 'doc'>, b: Omit<Placed, 'doc'>) =>
    sign * (compareKeys(a.key, b.key) || compareKeys(a.id, b.id))
  const from = after === undefined ? undefined : decodeCursor(orderBy, after)
  const found: Placed[] = []
  for (const doc of seen)
    if (matches(doc, where) && keyOf(doc[field]) !== null) found.push(place(doc))
  const rest = found.sort(compare).filter(placed => !from || compare(placed, from) > 0)
  const items = rest.slice(0, limit)
  return {
    items: items.map(({ doc }) => copy<never>(doc)),
    ...(rest.length > limit ? { next: encodeCursor(orderBy, items.at(-1)!) } : {}),
  }
}

type Tables = {
  readonly of: (collection: Collection) => Table
  readonly living: (table: Table, id: string) => Fields | undefined
  readonly sweep: (table: Table) => void
  readonly seen: (table: Table, where?: Where) => Fields[]
}

/** Tables of documents. An expired document is removed at the next access. */
function createTables(tables: ReadonlyMap<string, Table>, clock: Clock): Tables {
  const expired = ({ expires }: Table, doc: Fields): boolean =>
    expires !== undefined && typeof doc[expires] === 'number' && doc[expires] <= clock.now()
  const sweep = (table: Table) => {
    if (table.expires !== undefined)
      for (const [id, doc] of table.docs) if (expired(table, doc)) put(table, id, undefined)
  }
  return {
    of({ name }) {
      const table = tables.get(name)
      if (!table)
        throw fault('UNAVAILABLE', { what: `The collection ${name}`, why: 'it was never defined' })
      return table
    },
    living(table, id) {
      const doc = table.docs.get(id)
      return doc && !expired(table, doc) ? doc : undefined
    },
    sweep,
    seen(table, where) {
      sweep(table)
      return [...table.docs.values()].filter(doc => matches(doc, where))
    },
  }
}

function createEngine(clock: Clock): StorageEngine {
  const kept = new Map<string, Table>()
  const { of, living, sweep, seen } = createTables(kept, clock)
  let closed = false
  const open = () => {
    if (closed) throw fault('UNAVAILABLE', { what: 'The database', why: 'it is closed' })
  }
  function change(table: Table, doc: Fields, changing: Parameters<typeof applyChange>[1]): Fields {
    const next = applyChange(doc, copy(changing))
    checkSize(table.name, JSON.stringify(next))
    put(table, next['id'] as string, next)
    return next
  }
  function insert<D extends Doc>(collection: Collection<D>, doc: D): void {
    const table = of(collection)
    const json = JSON.stringify(doc)
    checkDoc(collection.name, doc, json)
    sweep(table)
    if (table.docs.has(doc.id)) throw fault('DUPLICATE', { fields: 'id' })
    put(table, doc.id, JSON.parse(json) as Fields)
  }
  return {
    limits: { documentBytesMax },
    exclusive: true,
    async define(collection) {
      open()
      checkCollection(collection)
      define(kept, copy(collection))
    },
    async collections() {
      open()
      return [...kept.values()]
        .map(({ spec }) => copy<Collection>(spec))
        .sort((a, b) => compareKeys(a.name, b.name))
    },
    async insert(collection, doc) {
      open()
      insert(collection, doc)
    },
    async insertMany(collection, docs) {
      open()
      of(collection)
      for (const [inserted, doc] of docs.entries()) {
        try {
          insert(collection, doc)
        } catch (error) {
          return { inserted, error: error as Error }
        }
      }
      return { inserted: docs.length }
    },
    async get(collection, id) {
      open()
      const doc = living(of(collection), id)
      return doc && copy<never>(doc)
    },
    async find(collection, query = {}) {
      open()
      checkQuery(query)
      return page(seen(of(collection)), query)
    },
    async update(collection, id, changing, options = {}) {
      open()
      checkChange(changing)
      if (options.if) checkWhere(options.if)
      const table = of(collection)
      const doc = living(table, id)
      return doc && matches(doc, options.if) ? copy<never>(change(table, doc, changing)) : undefined
    },
    async updateMany(collection, where, changing) {
      open()
      checkWhere(where)
      checkChange(changing)
      const table = of(collection)
      return seen(table, where).map(doc => change(table, doc, changing)).length
    },
    async remove(collection, id, options = {}) {
      open()
      if (options.if) checkWhere(options.if)
      const table = of(collection)
      const doc = living(table, id)
      if (!doc || !matches(doc, options.if)) return false
      put(table, id, undefined)
      return true
    },
    async removeMany(collection, where) {
      open()
      checkWhere(where)
      const table = of(collection)
      return seen(table, where).map(doc => put(table, doc['id'] as string, undefined)).length
    },
    async count(collection, where = {}) {
      open()
      checkWhere(where)
      return seen(of(collection), where).length
    },
    async durable() {
      open()
    },
    async ping() {
      open()
    },
    async close() {
      closed = true
      kept.clear()
    },
  }
}

export const memoryStorage = (clock: Clock): StorageEngine => createEngine(clock)

export default defineAdapter<StorageEngine>({
  port: 'storage',
  scheme: 'memory',
  ephemeral: true,
  open: async ({ clock }) => memoryStorage(clock),
})
