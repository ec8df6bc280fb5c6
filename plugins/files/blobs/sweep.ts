// Finishes what a crash interrupted: files that were never stored, jobs that were never enqueued,
// removals that never ended.
import type { Clock } from '#ports/clock.ts'
import type { Queue } from '#ports/queue.ts'
import type { Collection, Doc, ScopedStorage } from '#ports/storage.ts'
import type { ArtifactService } from '../artifacts.ts'
import type { Keeper } from './blobs.ts'
import { Artifacts, Removals, sweepReason, Uploads } from '../collections.ts'
import { staleMs } from '../config.ts'
import { parseJob, type UploadService } from '../uploads/uploads.ts'

type Deps = {
  store: ScopedStorage
  queue: Queue
  clock: Clock
  keeper: Keeper
  uploads: UploadService
  artifacts: ArtifactService
}
const atOnce = 100

export function createSweep({ store, queue, clock, keeper, uploads, artifacts }: Deps) {
  const all = store.system(sweepReason)
  return async (): Promise<void> => {
    const before = clock.now() - staleMs
    const stale = async <D extends Doc>(collection: Collection<D>, field: string) =>
      (
        await all.find(collection, {
          where: { [field]: { lt: before } },
          orderBy: [field, 'asc'],
          limit: atOnce,
        })
      ).items
    for (const upload of await stale(Uploads, 'storingSince')) await uploads.discard(upload, upload)
    for (const artifact of await stale(Artifacts, 'storingSince'))
      await artifacts.discard(artifact, artifact)
    for (const removal of await stale(Removals, 'createdAt')) await keeper.finish(removal, removal)
    for (const { id, orgId } of await stale(Uploads, 'parsingSince'))
      await queue.enqueue(parseJob, { orgId, id }, { dedupeKey: id })
  }
}
