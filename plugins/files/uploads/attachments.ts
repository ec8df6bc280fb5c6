// What runs need of files: the texts of attached files, and the removal of a session's files.
import { textExcerptCharsMax } from '#contracts/files.ts'
import type { ScopedBlobs } from '#ports/blobs.ts'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import type { Attached, UploadsApi } from '../api.ts'
import type { Keeper } from '../blobs/blobs.ts'
import { Artifacts, Uploads } from '../collections.ts'
import { attachPollMs, attachWaitMs, type FilesConfig } from '../config.ts'
import { createExcerpts } from './excerpt.ts'
import type { UploadService } from './uploads.ts'
import type { Usage } from '../blobs/usage.ts'

type Deps = {
  store: ScopedStorage
  blobs: ScopedBlobs
  clock: Clock
  keeper: Keeper
  uploads: UploadService
  config: FilesConfig
  usage: Usage
}
/** Documents of a session that are removed together. */
const removedAtOnce = 50

export function createUploadsApi({
  store,
  blobs,
  clock,
  keeper,
  uploads,
  config,
  usage,
}: Deps): UploadsApi {
  const excerpts = createExcerpts(blobs, config.attached_chars_kept)
  return {
    async attach(scope, ids, { textMax = textExcerptCharsMax, charsMax = Infinity, signal } = {}) {
      // Looks up all before it waits for any, so that an unknown id is refused at once.
      const found = await Promise.all(
        ids.map((id, i) => uploads.find(scope, id, `upload (attachments.${i})`)),
      )
      const until = clock.monotonic() + attachWaitMs
      const attached: Attached[] = []
      let room = charsMax
      for (let upload of found) {
        while (upload.status === 'parsing' && clock.monotonic() < until) {
          await clock.sleep(attachPollMs, signal)
          upload = await uploads.find(scope, upload.id)
        }
        const { text, truncated } = await excerpts(scope, upload, Math.min(textMax, room), signal)
        room -= text.length
        attached.push({
          id: upload.id,
          name: upload.filename,
          status: upload.status,
          text,
          truncated,
          chars: upload.textChars ?? 0,
        })
      }
      return attached
    },
    /** Goes page by page; removed files do not appear again. */
    async removeOfSession(scope, sessionId) {
      const own = store.tenant(scope)
      const query = { where: { sessionId, userId: scope.userId }, limit: removedAtOnce }
      for (;;) {
        const [{ items: files }, { items: made }] = await Promise.all([
          own.find(Uploads, query),
          own.find(Artifacts, { ...query, orderBy: ['createdAt', 'asc'] }),
        ])
        if (files.length + made.length === 0) return
        const hashes = [
          ...files.flatMap(({ hash, textHash }) =>
            textHash === undefined ? [hash] : [hash, textHash],
          ),
          ...made.map(({ hash }) => hash),
        ]
        await keeper.release(scope, hashes, () =>
          Promise.all([
            ...files.map(({ id }) => own.remove(Uploads, id)),
            ...made.map(({ id }) => own.remove(Artifacts, id)),
          ]),
        )
        await usage.add(scope, {
          files: -files.length - made.length,
          bytes: -[...files, ...made].reduce((sum, { bytes }) => sum + bytes, 0),
        })
      }
    },
  }
}
