// Counts an organisation's files and bytes, and enforces its quota.
import { fault, hasCode } from '#kernel'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Artifacts, FileUsages, Uploads, type FileUsage } from '../collections.ts'
import type { FilesConfig } from '../config.ts'

type Scope = { readonly orgId: string }
export type Amount = Pick<FileUsage, 'files' | 'bytes'>
const pageFiles = 200
/**
 * Milliseconds for which a new count is trusted. An organisation over its quota may ask again and
 * again, and each count reads every file.
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
  /** The sum is a hint, because a crash may leave files out. */
  const add = async (scope: Scope, { files, bytes }: Amount): Promise<boolean> =>
    (await store.tenant(scope).update(FileUsages, scope.orgId, { inc: { files, bytes } })) !==
    undefined
  /** Counts the files of an organisation that has no sum, or whose sum is over the quota. */
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
   * Counts once for all concurrent callers, and not again soon. Changes meanwhile are added to the
   * sum.
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
    /** QUOTA_REACHED names the current figure and the limit. */
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
