// Files beside a run: what the user attached, and what grew too long for an event. Both are kept by
// the files plugin.
import type { ArtifactsApi, SessionOwner, UploadsApi } from '../../files/api.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Sessions, type Run } from '../collections.ts'
import type { ReadUploads } from './conversation.ts'

/**
 * Characters of one file that a model may be given; the context takes less where its window is
 * small.
 */
const attachmentCharsMax = 500_000

/** NOT_FOUND names the place of an id that is not the user's. What has no text is told as that. */
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
      // What does not fit the window is told by the context.
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
