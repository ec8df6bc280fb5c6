// How many files an organisation has and how many bytes they take, and that it is no more than it
// may.
import { fault, hasCode } from '#kernel'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Artifacts, FileUsages, Uploads, type FileUsage } from './collections.ts'
import type { FilesConfig } from './config.ts'

type Scope = { readonly orgId: string }
export type Amount = Pick<FileUsage, 'files' | 'bytes'>
const pageFiles = 200
/**
 * A sum that was counted anew is believed for so long, in milliseconds: whoever is over the bound
 * may ask again and again, and each count reads every file.
 */
const countedMs = 60_000
/** Organisations whose count is remembered, about 150 bytes each. */
const countedMax = 10_000

export function createUsage({
  store,
  clock,
  config,
}: {
  store: ScopedStorage
  clock: Pick<Clock, 'monotonic'>
  config: FilesConfig
}) {
  const { files_max_per_org: filesMax, bytes_max_per_org: bytesMax } = config
  const counted = new Map<string, { readonly at: number; readonly work: Promise<Amount> }>()
  const isOver = ({ files, bytes }: Amount) => files >= filesMax || bytes >= bytesMax

  const count = async (scope: Scope): Promise<Amount> => {
    const own = store.tenant(scope)
    const sum = { files: 0, bytes: 0 }
    for (const collection of [Uploads, Artifacts]) {
      for (let after: string | undefined; ; ) {
        const { items, next } = await own.find(collection, {
          orderBy: ['hash', 'asc'],
          limit: pageFiles,
          ...(after === undefined ? {} : { after }),
        })
        sum.files += items.length
        for (const { bytes } of items) sum.bytes += bytes
        if (next === undefined) break
        after = next
      }
    }
    return sum
  }
  /** A crash may leave something out: the sum is a hint. */
  const add = async (scope: Scope, { files, bytes }: Amount): Promise<boolean> =>
    (await store.tenant(scope).update(FileUsages, scope.orgId, { inc: { files, bytes } })) !==
    undefined
  /** Of an organisation that has no sum yet, or whose sum is over the bound: as it is. */
  const recount = async (scope: Scope): Promise<Amount> => {
    const own = store.tenant(scope)
    const amount = await count(scope)
    if (await own.update(FileUsages, scope.orgId, { set: amount })) return amount
    await own
      .insert(FileUsages, { id: scope.orgId, orgId: scope.orgId, ...amount })
      .catch((error: unknown) => hasCode(error, 'DUPLICATE') || Promise.reject(error))
    return amount
  }
  /**
   * Once for all who ask at the same time, and not again soon: what comes and goes meanwhile is put
   * on the sum and taken off it.
   */
  const recountOnce = async (scope: Scope): Promise<Amount> => {
    const { orgId } = scope
    const now = clock.monotonic()
    const last = counted.get(orgId)
    if (last && now - last.at < countedMs) {
      const amount = await last.work
      return (await store.tenant(scope).get(FileUsages, orgId)) ?? amount
    }
    const work = recount(scope)
    counted.delete(orgId)
    counted.set(orgId, { at: now, work })
    if (counted.size > countedMax) counted.delete(counted.keys().next().value!)
    return work.catch((error: unknown) => {
      counted.delete(orgId)
      throw error
    })
  }
  return {
    async add(scope: Scope, amount: Amount): Promise<void> {
      if (!(await add(scope, amount))) await recount(scope)
    },
    /** QUOTA_REACHED says what there is, and how much there may be. */
    async requireRoom(scope: Scope): Promise<void> {
      const known = await store.tenant(scope).get(FileUsages, scope.orgId)
      const amount = known && !isOver(known) ? known : await recountOnce(scope)
      if (amount.files >= filesMax)
        throw fault('QUOTA_REACHED', { have: amount.files, max: filesMax, what: 'files' })
      if (amount.bytes >= bytesMax)
        throw fault('QUOTA_REACHED', { have: amount.bytes, max: bytesMax, what: 'bytes of files' })
    },
  }
}
export type Usage = ReturnType<typeof createUsage>
