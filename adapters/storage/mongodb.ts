// Documents in MongoDB, in any deployment, without transactions. Shared code computes each change
// here, and the result replaces the document if nobody else has changed it. After a conflict the
// change is computed again. One process's calls on a document keep their order.
import { MongoBulkWriteError } from 'mongodb'
import { defineAdapter, type Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Change, Doc, Query, StorageEngine, Where } from '#ports/storage.ts'
import {
  applyChange,
  checkChange,
  checkDoc,
  checkQuery,
  checkSize,
  checkWhere,
  decodeCursor,
  documentBytesMax,
  encodeCursor,
  keyOf,
  limitDefault,
  matches,
  type Fields,
  type Key,
} from '../_shared/documents.ts'
import {
  closed,
  connect,
  orFault,
  toFault,
  urlOptions,
  type Connection,
} from '../_shared/mongodb/database.ts'
import { all, behind, conditions, type Stored } from '../_shared/mongodb/filters.ts'
import { sortOf } from './mongodb/index-definitions.ts'
import { createIndexes } from './mongodb/indexes.ts'
import { createTables, type Table } from './mongodb/tables.ts'

/** How often expired documents are removed, in milliseconds. Reads skip them before that. */
const sweepMs = 60_000
/** Documents that a change of many reads at a time. */
const pageDocuments = 200

const docOf = ({ _id, _rev: _, ...fields }: Stored): Fields => ({ id: _id, ...fields })
const storedOf = ({ id, ...fields }: Fields, rev: number): Stored => ({
  _id: id as string,
  ...fields,
  _rev: rev,
})
const revOf = ({ _rev: rev }: Stored) => rev as number

export function mongoStorage({
  connection: { db, ping, close },
  clock,
  log,
}: {
  connection: Connection
  clock: Clock
  log: Log
}): StorageEngine {
  let isClosed = false
  let closing: Promise<void> | undefined

  const check = () => {
    if (isClosed) throw closed()
  }
  const indexes = createIndexes({ db, clock, log })
  const tables = createTables({ db, indexes, clock, check })
  const { of } = tables
  const isExpired = ({ expires }: Table, doc: Fields) =>
    expires !== undefined && typeof doc[expires] === 'number' && doc[expires] <= clock.now()
  const expired = (table: Table) => ({ [table.expires!]: { $type: 'number', $lte: clock.now() } })
  const living = (table: Table) => (table.expires === undefined ? [] : [{ $nor: [expired(table)] }])
  const seen = (table: Table, where: Where | undefined) => [...conditions(where), ...living(table)]
  /** True when a document was removed. */
  const sweep = async (table: Table): Promise<boolean> => {
    if (table.expires === undefined) return false
    table.sweptAt = clock.monotonic()
    return (await orFault(table.kept.deleteMany(expired(table) as never))).deletedCount > 0
  }
  const sweepNow = async (table: Table) =>
    void (
      table.expires !== undefined &&
      clock.monotonic() - table.sweptAt > sweepMs &&
      (await sweep(table))
    )
  /** Writes. An expired document that is not removed yet must not block a new one. */
  const write = async <T>(table: Table, act: () => Promise<T>): Promise<T> => {
    try {
      return await act()
    } catch (error) {
      const known = toFault(error)
      if ((known as { code?: string }).code !== 'DUPLICATE' || !(await sweep(table))) throw known
      return orFault(act())
    }
  }
  const read = async (table: Table, id: string): Promise<Stored | undefined> => {
    const stored = await orFault(table.kept.findOne({ _id: id }))
    return stored && !isExpired(table, docOf(stored)) ? stored : undefined
  }
  const changed = async (
    table: Table,
    id: string,
    change: Change,
    where: Where | undefined,
  ): Promise<Fields | undefined> => {
    for (;;) {
      const stored = await read(table, id)
      if (!stored || !matches(docOf(stored), where)) return undefined
      const text = JSON.stringify(applyChange(docOf(stored), change))
      const next = JSON.parse(text) as Fields
      checkSize(table.name, text)
      const { matchedCount } = await write(table, () =>
        table.kept.replaceOne(
          { _id: id, _rev: revOf(stored) } as never,
          storedOf(next, revOf(stored) + 1),
        ),
      )
      if (matchedCount === 1) return next
    }
  }
  /** Acts on each matching document once, though it may still match after its change. */
  const eachOf = async (
    table: Table,
    where: Where,
    act: (id: string) => Promise<boolean>,
  ): Promise<number> => {
    let count = 0
    let last: string | undefined
    for (;;) {
      const found = await orFault(
        table.kept
          .find(
            all([...seen(table, where), ...(last === undefined ? [] : [{ _id: { $gt: last } }])]),
            { projection: { _id: 1 }, sort: { _id: 1 }, limit: pageDocuments },
          )
          .toArray(),
      )
      for (const { _id } of found) if (await act((last = _id))) count++
      if (found.length < pageDocuments) return count
    }
  }
  const insertable = (table: Table, doc: Doc): Stored => {
    const json = JSON.stringify(doc)
    checkDoc(table.name, doc, json)
    return storedOf(JSON.parse(json) as Fields, 1)
  }

  return {
    limits: { documentBytesMax },
    exclusive: false,
    define: tables.define,
    collections: tables.collections,
    async insert(collection, doc) {
      const table = of(collection)
      const stored = insertable(table, doc)
      await table.lanes.one(doc.id, () => write(table, () => table.kept.insertOne(stored)))
      await sweepNow(table)
    },
    async insertMany(collection, docs) {
      const table = of(collection)
      const stored: Stored[] = []
      let bad: Error | undefined
      try {
        for (const doc of docs) stored.push(insertable(table, doc))
      } catch (error) {
        bad = error as Error
      }
      const outcome = await table.lanes.many(async () => {
        for (let done = 0; done < stored.length; ) {
          try {
            await orFault(sweepNow(table))
            done += (await table.kept.insertMany(stored.slice(done), { ordered: true }))
              .insertedCount
          } catch (error) {
            if (error instanceof MongoBulkWriteError) done += error.insertedCount
            const known = toFault(error) as Error
            if ((known as { code?: string }).code !== 'DUPLICATE' || !(await sweep(table)))
              return { inserted: done, error: known }
          }
        }
        return { inserted: stored.length }
      })
      return bad && outcome.error === undefined ? { ...outcome, error: bad } : outcome
    },
    async get(collection, id) {
      const table = of(collection)
      return table.lanes.one(id, async () => {
        const stored = await read(table, id)
        return stored && (docOf(stored) as never)
      })
    },
    async find(collection, query: Query = {}) {
      checkQuery(query)
      const table = of(collection)
      const { where, orderBy = ['id', 'asc'] as const, limit = limitDefault, after } = query
      const [field, direction] = orderBy
      const from = after === undefined ? undefined : decodeCursor(orderBy, after)
      return table.lanes.look(async () => {
        const found = await orFault(
          table.kept
            .find(all([...seen(table, where), ...behind(field, direction, from)]), {
              sort: sortOf(table.spec, where, [field, direction]),
              limit: limit + 1,
            })
            .toArray(),
        )
        const items = found.slice(0, limit).map(docOf)
        const last = items.at(-1)
        return {
          items: items as never[],
          ...(found.length > limit
            ? {
                next: encodeCursor(orderBy, {
                  key: keyOf(last![field]) as Key,
                  id: last!['id'] as string,
                }),
              }
            : {}),
        }
      })
    },
    async update(collection, id, change, { if: where } = {}) {
      checkChange(change)
      if (where) checkWhere(where)
      const table = of(collection)
      return table.lanes.one(id, () => changed(table, id, change, where)) as Promise<never>
    },
    async updateMany(collection, where, change) {
      checkWhere(where)
      checkChange(change)
      const table = of(collection)
      return table.lanes.many(() =>
        eachOf(table, where, async id => (await changed(table, id, change, where)) !== undefined),
      )
    },
    async remove(collection, id, { if: where } = {}) {
      if (where) checkWhere(where)
      const table = of(collection)
      return table.lanes.one(id, async () => {
        for (;;) {
          const stored = await read(table, id)
          if (!stored || !matches(docOf(stored), where)) return false
          if (
            (await orFault(table.kept.deleteOne({ _id: id, _rev: revOf(stored) } as never)))
              .deletedCount === 1
          )
            return true
        }
      })
    },
    async removeMany(collection, where) {
      checkWhere(where)
      const table = of(collection)
      return table.lanes.many(
        async () => (await orFault(table.kept.deleteMany(all(seen(table, where))))).deletedCount,
      )
    },
    async count(collection, where = {}) {
      checkWhere(where)
      const table = of(collection)
      return table.lanes.look(() => orFault(table.kept.countDocuments(all(seen(table, where)))))
    },
    async durable() {
      check()
      await tables.settled()
    },
    async ping() {
      check()
      await ping()
    },
    close() {
      isClosed = true
      return (closing ??= tables.settled().then(indexes.close).then(close))
    },
  }
}

export default defineAdapter<StorageEngine>({
  port: 'storage',
  scheme: 'mongodb',
  options: urlOptions,
  open: async ({ url, clock, log }) => mongoStorage({ connection: await connect(url), clock, log }),
})
