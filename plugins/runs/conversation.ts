// What was said in the session before this run, and what the user put beside the words.
import type { Attachment, Message } from '#ports/models.ts'
import type { Store } from '#ports/storage.ts'
import { Runs, type Run } from './collections.ts'

/** Past runs that a conversation reaches back to, and their characters. */
const historyRunsMax = 50
const historyCharsMax = 2_000_000

/** A request with its answer; the answer is missing where the conversation was cut back to the request. */
export type Exchange = { readonly request: string; readonly answer: string | undefined }
export type Conversation = { /** The oldest first. */ readonly past: readonly Exchange[]; readonly request: string; readonly attachments: readonly Attachment[] }
/** Text of uploads by their ids, in that order. */
export type ReadUploads = (scope: { readonly orgId: string; readonly userId: string }, ids: readonly string[]) => Promise<readonly Attachment[]>

type Draft = Pick<Run, 'id' | 'orgId' | 'userId' | 'sessionId' | 'opensSession' | 'request'>

/** `opensSession` spares the look-up where there can be no history. Files of earlier messages come after those of this one. */
export async function conversationOf(store: Store, run: Draft, readUploads: ReadUploads): Promise<Conversation> {
  const past: Exchange[] = [], ids: string[] = [...(run.request.attachments ?? [])]
  if (!run.opensSession) {
    const { items } = await store.find(Runs, { where: { sessionId: run.sessionId, id: { lt: run.id }, status: 'done' }, orderBy: ['id', 'desc'], limit: historyRunsMax })
    let chars = 0
    for (const { request, answer, answerCut } of items) {
      chars += request.message.length + (answer?.length ?? 0)
      if (chars > historyCharsMax) break
      past.unshift({ request: request.message, answer: answerCut ? undefined : (answer ?? '') })
      ids.push(...(request.attachments ?? []))
    }
  }
  return { past, request: run.request.message, attachments: ids.length === 0 ? [] : await readUploads(run, [...new Set(ids)]) }
}

export const messagesOf = ({ past }: Conversation): Message[] => past.flatMap(({ request, answer }): Message[] => [{ role: 'user', content: request }, ...(answer === undefined ? [] : [{ role: 'assistant' as const, content: answer }])])
