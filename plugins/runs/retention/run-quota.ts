// How many conversations an organisation may have. Each process counts them once a minute, and
// again when the bound seems reached. So the bound may be exceeded by a little.
import { fault } from '#kernel'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Sessions } from '../collections.ts'
import type { RunsConfig } from '../config.ts'

const freshMs = 60_000
/**
 * An organisation at its bound is counted again after so many milliseconds. Until then a removed
 * conversation makes no room.
 */
const fullMs = 1000
/** Organisations whose count is cached, about 150 bytes each. */
const knownMax = 10_000

export function createQuota({
  store,
  clock,
  config,
}: {
  store: ScopedStorage
  clock: Clock
  config: RunsConfig
}) {
  const max = config.sessions_max_per_org
  const known = new Map<
    string,
    {
      count: number
      readonly at: number
      /** The bound was reached when it was counted. */
      readonly isFull: boolean
    }
  >()
  return {
    /**
     * Counts one more conversation that is about to begin. QUOTA_REACHED tells how many there are.
     */
    async requireRoom(scope: { readonly orgId: string }): Promise<void> {
      const now = clock.monotonic()
      const before = known.get(scope.orgId)
      const isFresh =
        before !== undefined &&
        (before.isFull ? now - before.at < fullMs : now - before.at < freshMs && before.count < max)
      const count = isFresh ? before.count : await store.tenant(scope).count(Sessions)
      const entry = isFresh ? before : { count, at: now, isFull: count >= max }
      if (entry.isFull) known.set(scope.orgId, entry)
      if (entry.count >= max)
        throw fault('QUOTA_REACHED', { have: entry.count, max, what: 'conversations' })
      entry.count++
      known.delete(scope.orgId)
      known.set(scope.orgId, entry)
      if (known.size > knownMax) known.delete(known.keys().next().value!)
    },
  }
}
export type Quota = ReturnType<typeof createQuota>
