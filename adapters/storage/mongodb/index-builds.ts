// Lists, makes and drops indexes on the server.
import { MongoServerError, type Db } from 'mongodb'
import { fault } from '#contracts/faults.ts'
import type { Log } from '#ports/adapter.ts'
import { orFault, toFault } from '../../_shared/mongodb/database.ts'
import { hasKeyOf, isOurs, isSame, type Index } from './index-definitions.ts'

export type Wanted = { readonly kept: string; readonly indexes: readonly Index[] }

/**
 * https://www.mongodb.com/docs/manual/reference/error-codes/: IndexOptionsConflict,
 * IndexKeySpecsConflict; NamespaceNotFound; IndexNotFound.
 */
const conflicts = [85, 86]
const noCollection = 26
const noIndex = 27
const hasNumber = (error: unknown, ...codes: readonly number[]) =>
  error instanceof MongoServerError && codes.includes(Number(error.code))

export function createIndexBuilds(db: Db, log: Log) {
  const standing = async (kept: string): Promise<readonly Index[]> => {
    try {
      return (await db.collection(kept).indexes()) as readonly Index[]
    } catch (error) {
      if (hasNumber(error, noCollection)) return []
      throw toFault(error)
    }
  }
  const drop = async (kept: string, { name }: Index): Promise<void> => {
    await db
      .collection(kept)
      .dropIndex(name)
      .catch((error: unknown) =>
        hasNumber(error, noIndex) ? undefined : Promise.reject(toFault(error)),
      )
    log('info', 'mongodb.index_dropped', { collection: kept, index: name })
  }
  const create = async (
    { kept, indexes }: Wanted,
    found: readonly Index[],
    renew: () => Promise<void>,
  ): Promise<void> => {
    // Indexes that exist by name are requested again, so that this call waits for one that is being
    // built.
    const asked = indexes.filter(
      one => !found.some(there => isSame(there, one) && there.name !== one.name),
    )
    if (asked.length === 0) return
    const make = () => db.collection(kept).createIndexes(asked as never)
    try {
      await make()
    } catch (error) {
      if (!hasNumber(error, ...conflicts)) throw toFault(error)
      // An earlier version declared the index otherwise, under the same name or key. The server
      // cannot change an index.
      const rivals = found.filter(there =>
        asked.some(one => (there.name === one.name || hasKeyOf(there, one)) && !isSame(there, one)),
      )
      const alien = rivals.find(one => !isOurs(one))
      if (alien)
        throw fault(
          'UNAVAILABLE',
          {
            what: `The index of ${Object.keys(alien.key).join(', ')} in ${kept}`,
            why:
              `there is one by the name ${alien.name} with other options, which the server ` +
              'did not make; drop it',
          },
          { cause: error },
        )
      for (const rival of rivals) {
        await renew()
        await drop(kept, rival)
      }
      await renew()
      await orFault(make())
    }
  }
  return { standing, create, drop }
}
