// Documents in one SQLite file. It needs no other service, and an acknowledged write is on disk.
import { fault } from '#contracts/faults.ts'
import { defineAdapter, type AdapterContext } from '#ports/adapter.ts'
import type { Collection, Doc, Page, Query, StorageEngine } from '#ports/storage.ts'
import {
  checkChange,
  checkCollection,
  checkDoc,
  checkQuery,
  checkWhere,
  documentBytesMax,
  indexedFields,
  keyOf,
  limitDefault,
  union,
} from '../_shared/documents.ts'
import { backUp } from './sqlite/backup.ts'
import { raise } from '../_shared/sqlite/failures.ts'
import type { Failure } from '../_shared/sqlite/protocol.ts'
import {
  pathOf,
  quotaOf,
  writerKey,
  type SharesWriter,
  sqliteOptions,
} from '../_shared/sqlite/sharing.ts'
import { openWriter, type Writer } from '../_shared/sqlite/writer.ts'

const sweepEveryMs = 60_000
const sweepRows = 500

type Known = { readonly at: number; spec: Collection; fields: readonly string[] }

const parse = (json: string | undefined) =>
  json === undefined ? undefined : (JSON.parse(json) as Doc)
const same = <T>(value: T) => value

function createCollections(writer: Writer) {
  const known = new Map<string, Known>()
  let count = 0
  return {
    /** The collections whose documents expire. */
    expiring: () =>
      [...known.values()].filter(({ spec }) => spec.expires !== undefined).map(({ at }) => at),
    get({ name }: Collection): Known {
      const found = known.get(name)
      if (!found)
        throw fault('UNAVAILABLE', { what: `The collection ${name}`, why: 'it was never defined' })
      return found
    },
    async define(given: Collection): Promise<void> {
      checkCollection(given)
      const before = known.get(given.name)
      const spec = before ? union(before.spec, given) : given
      if (before && JSON.stringify(before.spec) === JSON.stringify(spec)) return
      const at = before?.at ?? count++
      await writer.write(['define', at, JSON.parse(JSON.stringify(spec))], same)
      known.set(given.name, { at, spec, fields: indexedFields(spec) })
    },
  }
}

function createEngine(
  writer: Writer,
  collections: ReturnType<typeof createCollections>,
): StorageEngine & SharesWriter {
  function row(collection: Collection, doc: Doc) {
    const { at, fields } = collections.get(collection)
    const json = JSON.stringify(doc)
    checkDoc(collection.name, doc, json)
    return {
      at,
      json,
      keys: fields.map(field => keyOf((doc as unknown as Record<string, unknown>)[field])),
    }
  }

  return {
    [writerKey]: writer,
    limits: { documentBytesMax },
    exclusive: true,
    define: collections.define,
    collections: () =>
      writer.read(['collections'], (specs: string[]) =>
        specs.map(spec => JSON.parse(spec) as Collection),
      ),
    async insert(collection, doc) {
      const { at, json, keys } = row(collection, doc)
      return writer.write(['insert', at, doc.id, json, keys], same<undefined>)
    },
    async insertMany(collection, docs) {
      const rows: (readonly [string, string, unknown])[] = []
      let [refused, at]: [unknown, number] = [undefined, collections.get(collection).at]
      for (const doc of docs) {
        try {
          const { json, keys } = row(collection, doc)
          rows.push([doc.id, json, keys])
        } catch (error) {
          refused = error
          break
        }
      }
      return writer.write(['insertMany', at, rows], ([inserted, failure]: [number, Failure?]) => {
        const error = failure ? raise(failure) : (refused as Error | undefined)
        return error ? { inserted, error } : { inserted }
      })
    },
    async get(collection, id) {
      return writer.read(['get', collections.get(collection).at, id], parse) as Promise<never>
    },
    async find<D extends Doc>(collection: Collection<D>, query: Query = {}) {
      checkQuery(query)
      const { where = {}, orderBy = ['id', 'asc'], limit = limitDefault, after } = query
      const page = ([next, ...docs]: string[]): Page<D> => {
        const items = docs.map(doc => JSON.parse(doc) as D)
        return next === undefined ? { items } : { items, next }
      }
      return writer.read(
        ['find', collections.get(collection).at, JSON.stringify({ where, orderBy, limit, after })],
        page,
      )
    },
    async update(collection, id, change, options = {}) {
      checkChange(change)
      if (options.if) checkWhere(options.if)
      return writer.write(
        [
          'update',
          collections.get(collection).at,
          id,
          JSON.stringify([change, options.if ?? null]),
        ],
        parse,
      ) as Promise<never>
    },
    async updateMany(collection, where, change) {
      checkWhere(where)
      checkChange(change)
      return writer.write(
        ['updateMany', collections.get(collection).at, JSON.stringify([where, change])],
        same<number>,
      )
    },
    async remove(collection, id, options = {}) {
      if (options.if) checkWhere(options.if)
      return writer.write(
        ['remove', collections.get(collection).at, id, options.if && JSON.stringify(options.if)],
        same<boolean>,
      )
    },
    async removeMany(collection, where) {
      checkWhere(where)
      return writer.write(
        ['removeMany', collections.get(collection).at, JSON.stringify(where)],
        same<number>,
      )
    },
    async count(collection, where = {}) {
      checkWhere(where)
      return writer.read(
        ['count', collections.get(collection).at, JSON.stringify(where)],
        same<number>,
      )
    },
    durable: writer.durable,
    epoch: writer.epoch,
    ping: () => writer.read(['ping'], () => undefined),
    backup: path => backUp(writer, path),
    close: writer.close,
  }
}

/** Removes expired documents a few at a time, so that no call waits long. */
async function sweepForever(
  { clock, log }: AdapterContext,
  writer: Writer,
  places: () => readonly number[],
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(sweepEveryMs, signal)
    for (const at of places()) {
      try {
        while (!signal.aborted && (await writer.write(['sweep', at], same<number>)) === sweepRows);
      } catch (error) {
        log('warn', 'storage.sweep_failed', { error: (error as Error).message })
      }
    }
  }
}

export default defineAdapter<StorageEngine>({
  port: 'storage',
  scheme: 'sqlite',
  options: sqliteOptions,
  async open(opening) {
    const { clock } = opening
    const writer = await openWriter(
      { path: pathOf(opening), bytesMax: quotaOf(opening) },
      clock.now,
    )
    const stop = new AbortController()
    writer.watch({ settled() {}, lost() {}, ended: () => stop.abort() })
    const collections = createCollections(writer)
    // Ends with the writer, and then rejects only because it was stopped.
    void sweepForever(opening, writer, collections.expiring, stop.signal).catch(() => {})
    return createEngine(writer, collections)
  },
})
