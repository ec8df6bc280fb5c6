// What the model is given: the conversation so far, newest first until the budget is used, and the request.
import type { Message } from '#ports/models.ts'
import type { Store } from '#ports/storage.ts'
import { Runs, type Run } from './collections.ts'

/** Past runs that a context reaches back to, and their characters. */
const historyRunsMax = 20
const historyCharsMax = 60_000

// Making a formatter costs more than everything else in a short run, and most callers are in UTC.
const localTime = (at: number, timeZone: string) => timeZone === 'UTC' ? new Date(at).toUTCString() : new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeStyle: 'short', timeZone }).format(at)

/** `opensSession` spares the look-up where there can be no history. */
export async function contextOf(store: Store, run: Pick<Run, 'id' | 'sessionId' | 'opensSession' | 'request' | 'createdAt'>): Promise<Message[]> {
  const { message, client_tz } = run.request
  const opening: Message = { role: 'system', content: `It is ${localTime(run.createdAt, client_tz)} (${client_tz}).` }
  const past: Message[] = []
  if (!run.opensSession) {
    const { items } = await store.find(Runs, { where: { sessionId: run.sessionId, id: { lt: run.id }, status: 'done' }, orderBy: ['id', 'desc'], limit: historyRunsMax })
    let chars = 0
    for (const { request, answer } of items) {
      chars += request.message.length + (answer?.length ?? 0)
      if (chars > historyCharsMax) break
      past.unshift({ role: 'user', content: request.message }, { role: 'assistant', content: answer ?? '' })
    }
  }
  return [opening, ...past, { role: 'user', content: message }]
}
