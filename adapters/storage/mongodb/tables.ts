// The declared collections: their specifications, and MongoDB's collections that hold their
// documents.
import type { Collection as Kept, Db } from 'mongodb'
import { fault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import type { Collection } from '#ports/storage.ts'
import { checkCollection, union } from '../../_shared/documents.ts'
import { createKeyedQueue, type KeyedQueue } from '../../_shared/keyed-queue.ts'
import { orFault } from '../../_shared/mongodb/database.ts'
import type { Stored } from '../../_shared/mongodb/filters.ts'
import type { createIndexes } from './indexes.ts'

export type Table = {
  readonly name: string
  spec: Collection
  readonly kept: Kept<Stored>
  readonly lanes: KeyedQueue
  expires: string | undefined
  sweptAt: number
}

/**
 * The prefix of declared collections. The adapter's own collections begin with an underscore, and
 * no declared one does.
 */
const prefix = 'c_'
/** The adapter's own collection of specifications, as JSON. */
const specsName = '_collections'

type Parts = {
  readonly db: Db
  readonly indexes: Pick<ReturnType<typeof createIndexes>, 'want'>
  readonly clock: Clock
  /** Throws when the storage is closed. */
  readonly check: () => void
}
export function createTables({ db, indexes, clock, check }: Parts) {
  const tables = new Map<string, Table>()
  const specs = db.collection<{ _id: string; spec: string }>(specsName)
  return {
    of: ({ name }: Collection): Table => {
      check()
      const table = tables.get(name)
      if (!table)
        throw fault('UNAVAILABLE', { what: `The collection ${name}`, why: 'it was never defined' })
      return table
    },
    async define(collection: Collection): Promise<void> {
      check()
      checkCollection(collection)
      const { name } = collection
      const kept = db.collection<Stored>(prefix + name)
      const known = tables.get(name)
      const spec = known ? union(known.spec, collection) : collection
      const text = JSON.stringify(spec)
      const [noted] = await Promise.all([
        orFault(specs.findOne({ _id: name })),
        indexes.want(spec, prefix + name),
      ])
      // Usually the specification is stored already. A read costs less than a write that a majority
      // acknowledges.
      if (noted?.spec !== text)
        await orFault(specs.updateOne({ _id: name }, { $set: { spec: text } }, { upsert: true }))
      const table = known ?? {
        name,
        spec,
        kept,
        lanes: createKeyedQueue(),
        expires: undefined,
        sweptAt: clock.monotonic(),
      }
      table.spec = spec
      table.expires = collection.expires ?? table.expires
      tables.set(name, table)
    },
    async collections(): Promise<Collection[]> {
      check()
      const known = await orFault(specs.find({}, { sort: { _id: 1 } }).toArray())
      const names = new Set(known.map(({ _id }) => _id))
      for (const { name } of await orFault(db.listCollections({}, { nameOnly: true }).toArray())) {
        if (!name.startsWith(prefix) || names.has(name.slice(prefix.length))) continue
        throw fault('UNAVAILABLE', {
          what: 'The list of collections',
          why:
            `it does not say what ${name.slice(prefix.length)} is, which a program of before ` +
            'this version made; start the server on it once',
        })
      }
      return known.map(({ spec }) => JSON.parse(spec) as Collection)
    },
    /** Waits for calls that are under way. */
    settled: () => Promise.all([...tables.values()].map(({ lanes }) => lanes.settled())),
  }
}
