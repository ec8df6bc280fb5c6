// Files beside a run: attachments of the user, and texts that are too long for an event. The files
// plugin keeps both.
import type { ArtifactsApi, SessionOwner, UploadsApi } from '../../files/api.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Sessions, type Run } from '../collections.ts'
import type { ReadUploads } from './conversation.ts'

/**
 * Characters of one file that a model may read. The context takes fewer where its window is small.
 */
const attachmentCharsMax = 500_000

/**
 * Throws NOT_FOUND with the place of an id that is not the user's. For a file without text, a note
 * takes the text's place.
 */
export const createReadUploads =
  ({ uploads }: { uploads: UploadsApi }): ReadUploads =>
  async ({ orgId, userId }, ids, charsMax) => {
    if (ids.length === 0) return []
    const attached = await uploads.attach({ orgId, userId }, ids, {
      textMax: attachmentCharsMax,
      charsMax,
    })
    return attached.map(({ name, text, status, truncated, chars }) => {
      const unread = Math.max(0, Math.min(chars, attachmentCharsMax) - text.length)
      // Text that does not fit the window is reported by `context_cut`.
      return {
        name,
        text:
          status === 'ready'
            ? `${text}${truncated && unread === 0 ? '\n[cut here]' : ''}`
            : `[no text: ${status}]`,
        unread,
      }
    })
  }

export type KeepText = (
  run: Run,
  key: string,
  name: string,
  text: string,
) => Promise<{ id: string; filename: string }>
export const createKeepText =
  ({ artifacts }: { artifacts: ArtifactsApi }): KeepText =>
  async ({ id: runId, orgId, userId, sessionId }, key, name, text) => {
    const filename = `${name}.txt`
    const { id } = await artifacts.create(
      { orgId, userId },
      {
        key,
        sessionId,
        runId,
        filename,
        mime: 'text/plain; charset=utf-8',
        isResult: true,
        content: new TextEncoder().encode(text),
      },
    )
    return { id, filename }
  }

/** Tells the files plugin whose a session is. */
export const sessionOwner = ({ store }: { store: ScopedStorage }): SessionOwner => ({
  async owns({ orgId, userId }, sessionId) {
    const session = await store.tenant({ orgId }).get(Sessions, sessionId)
    return session?.userId === userId && !session.deleting
  },
})
