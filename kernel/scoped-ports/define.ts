// Defines a plugin's collections. It also moves documents to ids with the organisation in them,
// where they were written before ids had it.
import { hasCode } from '#contracts/faults.ts'
import type { Collection, Doc, StorageEngine } from '#ports/storage.ts'
import { inStorage, isPlaced, isWithin, kept, placedIds } from './ids.ts'

type Owned = Doc & { readonly orgId?: unknown }
const pageDocuments = 200

/** The collection as the storage knows it; undefined where the storage cannot say. */
const knownAs = (engine: StorageEngine, name: string): Promise<Collection | null | undefined> =>
  engine.collections().then(
    list => list.find(one => one.name === name) ?? null,
    () => undefined,
  )

async function* unplaced(engine: StorageEngine, collection: Collection): AsyncGenerator<Owned> {
  let after: string | undefined
  do {
    const page = await engine.find<Owned>(collection as Collection<Owned>, {
      limit: pageDocuments,
      ...(after === undefined ? {} : { after }),
    })
    yield* page.items.filter(doc => typeof doc.orgId === 'string' && !isPlaced(doc))
    after = page.next
  } while (after !== undefined)
}

/**
 * Inserts the document under its new id, then removes the old one. After a crash in between both
 * exist, and the next run goes on. Unique keys are off meanwhile, because both documents have the
 * same values. Several processes may do this at once; the plugin serves in none of them before it
 * is done.
 */
async function place(engine: StorageEngine, collection: Collection, old: Owned): Promise<void> {
  const now = (await engine.get(collection, old.id)) as Owned | undefined
  if (!now) return
  const unlessThere = (error: unknown) => {
    if (!hasCode(error, 'DUPLICATE') || error.values['fields'] !== 'id') throw error
  }
  await engine.insert(collection, kept(collection, String(now.orgId), now)).catch(unlessThere)
  await engine.remove(collection, old.id)
}

export async function defineCollection(
  engine: StorageEngine,
  collection: Collection,
): Promise<void> {
  const wanted = inStorage(collection)
  if (!isWithin(collection)) {
    await engine.define(wanted)
    if (collection.scope !== 'tenant') return
    const [placed] = (
      await engine.find<Owned>(wanted as Collection<Owned>, { where: placedIds, limit: 1 })
    ).items
    if (placed && isPlaced(placed))
      throw new Error(
        `The collection ${collection.name} holds ids that lie within organisations; it ` +
          'cannot become global.',
      )
    return
  }
  const before = await knownAs(engine, collection.name)
  if (before !== null && before?.ids !== 'organisation') {
    const { unique: _, ids: __, ...plain } = wanted
    await engine.define(plain)
    for await (const doc of unplaced(engine, collection)) await place(engine, collection, doc)
    await engine.durable()
  }
  await engine.define(wanted)
}
