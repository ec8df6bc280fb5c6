// Every collection of one storage, in the order of its documents' ids: so the last id that the
// target holds says how far a copy was when it was cut off.
import { fault } from '#kernel'
import { CopyMark, type Collection, type Doc, type StorageEngine } from '#ports/storage.ts'
import { canonical, sha256, type Digest, type Progress } from './progress.ts'

/** Documents in memory at a time; each has 1 MiB at most. */
const page = 100

export const collectionsOf = async (storage: StorageEngine): Promise<readonly Collection[]> =>
  (await storage.collections()).filter(({ name }) => name !== CopyMark.name)

async function* documentsOf(
  storage: StorageEngine,
  collection: Collection,
  behind?: string,
): AsyncGenerator<readonly Doc[]> {
  for (let after: string | undefined; ; ) {
    const { items, next } = await storage.find(collection, {
      limit: page,
      ...(behind === undefined ? {} : { where: { id: { gt: behind } } }),
      ...(after === undefined ? {} : { after }),
    })
    if (items.length > 0) yield items
    if (next === undefined) return
    after = next
  }
}

/** The name of a collection that holds something, if there is one. */
export async function occupied(storage: StorageEngine): Promise<string | undefined> {
  for (const collection of await collectionsOf(storage)) {
    await storage.define(collection)
    if ((await storage.find(collection, { limit: 1 })).items.length > 0) return collection.name
  }
  return undefined
}

/**
 * Of what the storage holds: tells one installation from another at the same place. What expires
 * does not count, since it goes by itself.
 */
export async function fingerprintOf(storage: StorageEngine): Promise<string> {
  const hash = sha256()
  for (const collection of await collectionsOf(storage)) {
    await storage.define(collection)
    if (collection.expires === undefined)
      hash.update(
        canonical([
          collection.name,
          (await storage.find(collection, { limit: 1 })).items[0]?.id ?? null,
        ]),
      )
  }
  return hash.digest('hex')
}

export async function copyDocuments(
  from: StorageEngine,
  to: StorageEngine,
  progress: Progress,
): Promise<void> {
  for (const collection of await collectionsOf(from)) {
    await from.define(collection)
    await to.define(collection)
    const last = (await to.find(collection, { orderBy: ['id', 'desc'], limit: 1 })).items[0]?.id
    for await (const docs of documentsOf(from, collection, last)) {
      const { error } = await to.insertMany(collection, docs)
      if (error)
        throw fault(
          'UNAVAILABLE',
          {
            what: 'The copy',
            why: `the target refuses a document of ${collection.name}: ${error.message}`,
          },
          { cause: error },
        )
      progress.add(collection.name, { documents: docs.length })
    }
  }
  await to.durable()
  progress.say('copied the documents')
}

/** What a collection is belongs to it: a copy without its indexes or its expiry is none. */
const canonicalDeclaration = ({
  name,
  scope,
  unique = [],
  index = [],
  expires = '',
  owner = '',
}: Collection) => canonical({ name, scope, unique, index, expires, owner })

export async function digestDocuments(
  storage: StorageEngine,
  progress: Progress,
): Promise<Digest[]> {
  const digests: Digest[] = []
  for (const collection of await collectionsOf(storage)) {
    const hash = sha256().update(canonicalDeclaration(collection))
    let count = 0
    await storage.define(collection)
    for await (const docs of documentsOf(storage, collection)) {
      for (const doc of docs) hash.update('\n').update(canonical(doc))
      count += docs.length
      progress.add(`verifying ${collection.name}`, { documents: docs.length })
    }
    digests.push({ what: 'documents', name: collection.name, count, sha256: hash.digest('hex') })
  }
  return digests
}
