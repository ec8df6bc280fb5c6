import { files } from '#contracts/files.ts'
import { definePlugin, into } from '#kernel'
import { BlobStore } from '#ports/blobs.ts'
import { SystemClock } from '#ports/clock.ts'
import { JobQueue } from '#ports/queue.ts'
import { Storage } from '#ports/storage.ts'
import * as api from './api.ts'
import { createArtifacts, type ArtifactService } from './artifacts.ts'
import { createUploadsApi } from './uploads/attachments.ts'
import { createKeeper } from './blobs/blobs.ts'
import { Artifacts, FileUsages, Removals, sweepReason, Uploads } from './collections.ts'
import { FilesConfig, sweepCron } from './config.ts'
import { createReceiving } from './blobs/semaphore.ts'
import { createParsing } from './uploads/parsing.ts'
import { createSweep } from './blobs/sweep.ts'
import { textParser } from './uploads/text.ts'
import { createUploads, parseJob } from './uploads/uploads.ts'
import { createUsage } from './blobs/usage.ts'

const sweepJob = 'files.sweep'

export default definePlugin({
  name: 'files',
  version: '1.0.0',
  kernel: '^1.0.0',
  mount: 'v1',
  contract: files,
  uses: {
    store: Storage,
    blobs: BlobStore,
    queue: JobQueue,
    clock: SystemClock,
    parsers: api.Parsers,
    sessionOwners: api.SessionOwners,
  },
  config: FilesConfig,
  collections: [Uploads, Artifacts, Removals, FileUsages],
  system: [sweepReason],
  services: {
    line: createReceiving,
    keeper: createKeeper,
    usage: createUsage,
    parsing: createParsing,
    uploads: createUploads,
    artifacts: createArtifacts,
    sweep: createSweep,
    uploadsApi: createUploadsApi,
    artifactsApi: ({ artifacts }: { artifacts: ArtifactService }): api.ArtifactsApi => artifacts,
  },
  provides: { uploadsApi: api.Uploads, artifactsApi: api.Artifacts },
  routes: {
    'POST /uploads': ({ uploads, caller, body, address, signal }) =>
      uploads.create(caller, body, address, signal),
    'GET /uploads/{id}': ({ uploads, caller, params, signal }) =>
      uploads.read(caller, params.id, signal),
    'GET /uploads/{id}/raw': ({ uploads, caller, params, signal }) =>
      uploads.raw(caller, params.id, signal),
    'POST /artifacts': ({ artifacts, caller, body, address, signal }) =>
      artifacts.createOwn(caller, body, address, signal),
    'GET /artifacts/{id}': ({ artifacts, caller, params, signal }) =>
      artifacts.download(caller, params.id, signal),
  },
  jobs: {
    [parseJob]: {
      options: { concurrency: 2, attemptsMax: 3 },
      run: ({ parsing, data, signal }) => {
        const { orgId, id } = data as { orgId: string; id: string }
        return parsing.job({ orgId }, id, signal)
      },
    },
    [sweepJob]: { options: { concurrency: 1, attemptsMax: 1 }, run: ({ sweep }) => sweep() },
  },
  contributes: [into(api.Parsers, () => textParser)],
  start: async ({ queue }) =>
    void (await queue.schedule(sweepJob, {
      name: sweepJob,
      data: null,
      cron: sweepCron,
      timezone: 'UTC',
    })),
})
