// Reads the session's messages before this run, and the files that the user attached.
import type { Attachment, Message } from '#ports/models.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Runs, type Run } from '../collections.ts'
import type { SeenEnded } from '../journal/outcome.ts'
import { charsPerToken } from '../price.ts'
import { withTexts, type ReadTexts } from '../sessions/copies.ts'

/** Bounds of the history: past runs, and their characters. */
const historyRunsMax = 50
const historyCharsMax = 2_000_000

/**
 * A request with its answer; the answer is missing where the conversation was cut back to the
 * request.
 */
export type Exchange = { readonly request: string; readonly answer: string | undefined }
export type Conversation = {
  /** The oldest first. */ readonly past: readonly Exchange[]
  readonly request: string
  readonly attachments: readonly ReadAttachment[]
}
/** `unread`: characters that were left out because they would not have fitted. */
export type ReadAttachment = Attachment & { readonly unread?: number }
/**
 * Reads the texts of uploads, in the order of their ids, with at most `charsMax` characters in all.
 */
export type ReadUploads = (
  scope: { readonly orgId: string; readonly userId: string },
  ids: readonly string[],
  charsMax: number,
) => Promise<readonly ReadAttachment[]>

type Draft = Pick<
  Run,
  'id' | 'orgId' | 'userId' | 'sessionId' | 'opensSession' | 'request' | 'terms'
>

export type ReadConversation = (run: Draft) => Promise<Conversation>
type Deps = {
  readonly store: ScopedStorage
  readonly readUploads: ReadUploads
  readonly ended: SeenEnded
  readonly readTexts: ReadTexts
}

/**
 * With `opensSession` there is no history, so nothing is looked up. Files of earlier messages come
 * after those of this one.
 */
export const createConversation =
  ({ store, readUploads, ended, readTexts }: Deps): ReadConversation =>
  async run => {
    const past: Exchange[] = []
    const ids: string[] = [...(run.request.attachments ?? [])]
    if (!run.opensSession) {
      // The run before this one may have ended while its document still says that it runs.
      const { items } = await store.tenant(run).find(Runs, {
        where: {
          sessionId: run.sessionId,
          id: { lt: run.id },
          status: { in: ['done', 'running'] },
        },
        orderBy: ['id', 'desc'],
        limit: historyRunsMax,
      })
      let chars = 0
      for await (const { status, request, answer, answerCut } of withTexts(run, items, {
        ended,
        readTexts,
      })) {
        if (status !== 'done') continue
        chars += request.message.length + (answer?.length ?? 0)
        if (chars > historyCharsMax) break
        past.unshift({ request: request.message, answer: answerCut ? undefined : (answer ?? '') })
        ids.push(...(request.attachments ?? []))
      }
    }
    // The model could not read more than its window holds.
    return {
      past,
      request: run.request.message,
      attachments:
        ids.length === 0
          ? []
          : await readUploads(run, [...new Set(ids)], run.terms.contextTokens * charsPerToken),
    }
  }

export const messagesOf = ({ past }: Conversation): Message[] =>
  past.flatMap(({ request, answer }): Message[] => [
    { role: 'user', content: request },
    ...(answer === undefined ? [] : [{ role: 'assistant' as const, content: answer }]),
  ])
