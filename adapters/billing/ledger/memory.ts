// What a process remembers of the ledger, to write without reading first.
import type { StorageEngine } from '#ports/storage.ts'
import { createLru } from '../../_shared/lru.ts'
import type { Ask } from './operations.ts'
import { batchMax, entries } from './rows.ts'

export type Head = { readonly seq: number; readonly balance: number; readonly held: number }

const headsMax = 10_000
const holdsMax = 20_000

/** What was read of the storage and may be remembered until the storage loses writes. */
export function createMemory(storage: StorageEngine) {
  const heads = createLru<string, Head>(headsMax)
  const holds = createLru<string, number>(holdsMax)
  let epoch = storage.epoch?.()
  const keyed = (orgId: string, key: string) => `${orgId} ${key}`

  async function loadHolds(orgId: string, asks: readonly Ask[]): Promise<void> {
    const missing = new Set(
      asks.flatMap(({ ends }) =>
        ends === undefined || holds.get(keyed(orgId, ends)) !== undefined ? [] : [ends],
      ),
    )
    if (missing.size === 0) return
    const { items } = await storage.find(entries, {
      where: { orgId, key: { in: [...missing] } },
      limit: batchMax,
    })
    for (const { key, held } of items) holds.set(keyed(orgId, key), held)
  }
  async function loadHead(orgId: string): Promise<Head> {
    const {
      items: [last],
    } = await storage.find(entries, { where: { orgId }, orderBy: ['seq', 'desc'], limit: 1 })
    return last
      ? { seq: last.seq, balance: last.balanceAfter, held: last.heldAfter }
      : { seq: 0, balance: 0, held: 0 }
  }
  return {
    loadHolds,
    loadHead,
    head: (orgId: string) => heads.get(orgId),
    remember: (orgId: string, head: Head) => heads.set(orgId, head),
    forget: (orgId: string) => heads.delete(orgId),
    holdOf: (orgId: string, key: string) => holds.get(keyed(orgId, key)),
    held: (orgId: string, key: string, amount: number) => holds.set(keyed(orgId, key), amount),
    find: async (orgId: string, key: string) =>
      (await storage.find(entries, { where: { orgId, key }, limit: 1 })).items[0],
    /** False when writes were lost since the last time it was asked: nothing remembered holds. */
    stands(): boolean {
      const now = storage.epoch?.()
      if (now === epoch) return true
      epoch = now
      heads.clear()
      holds.clear()
      return false
    },
  }
}
export type Memory = ReturnType<typeof createMemory>
