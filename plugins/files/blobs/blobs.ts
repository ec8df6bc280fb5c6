// Documents with the same content share one blob. The blob may go only with the last document that
// refers to it. A store writes its document first and then looks for removals. A removal writes its
// note first and then looks for documents. So at least one of the two sees the other, in any
// processes. There is no lock, and no count that a crash could falsify.
import { createHash } from 'node:crypto'
import { fault } from '#kernel'
import type { Blob, ScopedBlobs } from '#ports/blobs.ts'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage, Store } from '#ports/storage.ts'
import { Artifacts, Removals, Uploads } from '../collections.ts'

type Org = { readonly orgId: string }
type Deps = { store: ScopedStorage; blobs: ScopedBlobs; clock: Clock }
type Storing = {
  readonly bytesMax: number
  readonly signal?: AbortSignal | undefined
  /** Writes the document that refers to the blob. Throwing leaves nothing behind. */
  readonly refer: (blob: Blob) => Promise<void>
}
const removalPollMs = 50
const removalWaitMs = 10_000

const isReferred = async (own: Store, hash: string): Promise<boolean> => {
  const counts = await Promise.all([
    own.count(Uploads, { hash }),
    own.count(Uploads, { textHash: hash }),
    own.count(Artifacts, { hash }),
  ])
  return counts.some(count => count > 0)
}

export function createKeeper({ store, blobs, clock }: Deps) {
  /** UNAVAILABLE when a removal that a crash cut short has not been swept yet. */
  const removalsOver = async (own: Store, hash: string, signal: AbortSignal | undefined) => {
    for (let waitedMs = 0; (await own.count(Removals, { hash })) > 0; waitedMs += removalPollMs) {
      if (waitedMs >= removalWaitMs)
        throw fault('UNAVAILABLE', {
          what: 'storing this content',
          why: 'the same content is just being removed',
        })
      await clock.sleep(removalPollMs, signal)
    }
  }
  return {
    /**
     * Puts the blob in place only after `refer` is on disk. When it rejects, the document of
     * `refer` still exists.
     */
    async put(
      scope: Org,
      content: AsyncIterable<Uint8Array>,
      { bytesMax, signal, refer }: Storing,
    ): Promise<Blob> {
      const own = store.tenant(scope)
      async function* referred(): AsyncGenerator<Uint8Array> {
        const hash = createHash('sha256')
        let bytes = 0
        for await (const part of content) {
          hash.update(part)
          bytes += part.length
          yield part
        }
        const blob = { hash: hash.digest('hex'), bytes }
        await refer(blob)
        await removalsOver(own, blob.hash, signal)
        await store.durable()
      }
      return blobs.tenant(scope).put(referred(), { bytesMax, ...(signal ? { signal } : {}) })
    },
    /** `forget` removes documents; each content that nothing refers to then goes too. */
    async release(
      scope: Org,
      hashes: readonly string[],
      forget: () => Promise<unknown>,
    ): Promise<void> {
      const own = store.tenant(scope)
      const removals = [...new Set(hashes)].map(hash => ({
        id: clock.id(),
        orgId: scope.orgId,
        hash,
        createdAt: clock.now(),
      }))
      for (const removal of removals) await own.insert(Removals, removal)
      await forget()
      for (const removal of removals) await this.finish(scope, removal)
    },
    /** Completes a removal; the sweep repeats it. */
    async finish(scope: Org, { id, hash }: { id: string; hash: string }): Promise<void> {
      const own = store.tenant(scope)
      // A crash may undo the document's removal, and then the document needs its content.
      await store.durable()
      if (!(await isReferred(own, hash))) await blobs.tenant(scope).remove(hash)
      await own.remove(Removals, id)
    },
  }
}
export type Keeper = ReturnType<typeof createKeeper>
