// Uploads: taken in as a stream, parsed at once or by a job, read, downloaded.
import type { Static } from 'typebox'
import type { StreamedBody } from '#contracts/contract.ts'
import {
  fileBytesMax,
  textExcerptCharsMax,
  type NewUpload,
  type Upload as UploadReply,
} from '#contracts/files.ts'
import { fault, type Bytes } from '#kernel'
import type { ScopedBlobs } from '#ports/blobs.ts'
import type { Clock } from '#ports/clock.ts'
import type { Queue } from '#ports/queue.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import type { Scope, SessionOwner } from '../api.ts'
import type { Keeper } from '../blobs/blobs.ts'
import { Uploads, type Upload } from '../collections.ts'
import { parseAtOnceBytesMax } from '../config.ts'
import { download } from './download.ts'
import { excerptOf } from './excerpt.ts'
import type { Semaphore } from '../blobs/semaphore.ts'
import { ownFile, requireSession } from '../blobs/ownership.ts'
import type { Parsing } from './parsing.ts'
import type { Usage } from '../blobs/usage.ts'

type Body = StreamedBody<Omit<Static<typeof NewUpload>, 'content_base64'>>
type Deps = {
  store: ScopedStorage
  blobs: ScopedBlobs
  queue: Queue
  clock: Clock
  line: Semaphore
  sessionOwners: () => readonly SessionOwner[]
  keeper: Keeper
  parsing: Parsing
  usage: Usage
}

export const parseJob = 'files.parse'

export function createUploads({
  store,
  blobs,
  queue,
  clock,
  line,
  sessionOwners,
  keeper,
  parsing,
  usage,
}: Deps) {
  /** NOT_FOUND tells of `what`. */
  const find = async (scope: Scope, id: string, what = 'upload'): Promise<Upload> => {
    const upload = await ownFile(store, Uploads, scope, id)
    if (!upload) throw fault('NOT_FOUND', { what })
    return upload
  }
  const discard = async (
    scope: { readonly orgId: string },
    { id, hash, bytes }: Upload,
  ): Promise<void> => {
    const own = store.tenant(scope)
    const textHash = (await own.get(Uploads, id))?.textHash
    await keeper.release(scope, textHash === undefined ? [hash] : [hash, textHash], () =>
      own.remove(Uploads, id),
    )
    await usage.add(scope, { files: -1, bytes: -bytes })
  }

  /** The document and its blob, not to be seen yet. */
  const receive = async (scope: Scope, body: Body, signal: AbortSignal): Promise<Upload> => {
    let upload: Upload | undefined
    await usage.requireRoom(scope)
    async function* content() {
      yield* body.content
      await requireSession(sessionOwners(), scope, body.fields().session_id)
    }
    const refer = async (blob: { hash: string; bytes: number }) => {
      const { filename, mime, session_id: sessionId } = body.fields()
      const now = clock.now()
      upload = {
        id: clock.id(),
        orgId: scope.orgId,
        userId: scope.userId,
        filename,
        mime,
        ...(sessionId ? { sessionId } : {}),
        ...blob,
        status: 'parsing',
        tries: 0,
        storingSince: now,
        createdAt: now,
      }
      await store.tenant(scope).insert(Uploads, upload)
      await usage.add(scope, { files: 1, bytes: blob.bytes })
    }
    try {
      await keeper.put(scope, content(), { bytesMax: fileBytesMax, signal, refer })
      return upload!
    } catch (error) {
      if (upload) await discard(scope, upload)
      throw error
    }
  }
  /**
   * Small ones before the answer; a large one is a job, written down before the client knows the
   * id.
   */
  const begin = async (scope: Scope, upload: Upload, signal: AbortSignal): Promise<void> => {
    const { id, orgId } = upload
    if (upload.bytes <= parseAtOnceBytesMax) return parsing.parse(scope, upload, signal)
    await store
      .tenant(scope)
      .update(Uploads, id, { set: { parsingSince: clock.now() }, unset: ['storingSince'] })
    await queue.enqueue(parseJob, { orgId, id }, { dedupeKey: id })
  }
  return {
    find,
    discard,
    async create(
      scope: Scope,
      body: Body,
      address: string,
      signal: AbortSignal,
    ): Promise<{ upload_id: string }> {
      const upload = await line.run({ user: scope.userId, address }, signal, () =>
        receive(scope, body, signal),
      )
      try {
        await begin(scope, upload, signal)
        // Its session may have gone meanwhile, and taken the document along.
        await find(scope, upload.id, 'session')
      } catch (error) {
        await discard(scope, upload)
        throw error
      }
      return { upload_id: upload.id }
    },
    async read(scope: Scope, id: string, signal: AbortSignal): Promise<UploadReply> {
      const upload = await find(scope, id)
      const { filename, mime, bytes, hash, status, detail, sessionId, createdAt } = upload
      const { text, truncated } = await excerptOf(blobs, scope, upload, textExcerptCharsMax, signal)
      return {
        id,
        filename,
        mime,
        bytes,
        sha256: hash,
        status,
        detail: detail ?? null,
        text: status === 'ready' ? text : null,
        text_truncated: truncated,
        session_id: sessionId ?? null,
        created_at: new Date(createdAt).toISOString(),
      }
    },
    raw: async (scope: Scope, id: string, signal: AbortSignal): Promise<Bytes> =>
      download(blobs, scope, await find(scope, id), signal),
  }
}
export type UploadService = ReturnType<typeof createUploads>
