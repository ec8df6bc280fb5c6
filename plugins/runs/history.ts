// What may be done with a conversation's past: fork it at a message, cut it back to one, look for words in all of them.
import type { Static } from 'typebox'
import type { SearchHit } from '#contracts/runs.ts'
import { fault, type Caller } from '#kernel'
import type { Clock } from '#ports/clock.ts'
import type { ScopedEventlog } from '#ports/eventlog.ts'
import type { ScopedStorage, Store } from '#ports/storage.ts'
import { Runs, Sessions, streamOf, streamsOf, type Run, type Session } from './collections.ts'
import type { SeenEnded } from './ended.ts'
import { piecesOf } from './bytes.ts'
import type { Texts } from './texts.ts'
import { copied, event } from './records.ts'
import type { SessionService } from './sessions.ts'
import { unstick } from './steps/turns.ts'
import { excerptAround, wordsOf } from './words.ts'

type Deps = { store: ScopedStorage; eventlog: ScopedEventlog; clock: Clock; sessions: SessionService; ended: SeenEnded; texts: Texts }
/** Exchanges that a fork takes along, the latest. */
const copiedMax = 500
/** Bytes of one fragment of a copied answer. */
const tokenBytesMax = 262_144
/** Of one search: runs that are read for a page, matches that are told of one conversation. */
const scannedMax = 1000, matchesMax = 3

/** The run that a message belongs to, and whether it is the answer. */
async function runOf(own: Store, sessionId: string, messageId: string): Promise<{ run: Run; isAnswer: boolean }> {
  for (const [field, isAnswer] of [['messageId', false], ['answerId', true]] as const) {
    const { items: [run] } = await own.find(Runs, { where: { sessionId, [field]: messageId }, limit: 1 })
    if (run) return { run, isAnswer }
  }
  throw fault('NOT_FOUND', { what: 'message of this session (message_id)' })
}

export function createHistory({ store, eventlog, clock, sessions, ended, texts }: Deps) {
  /** A closed run in another conversation: its words, without its work and its bill. */
  const copy = async (run: Run, sessionId: string, opens: boolean, withAnswer: boolean): Promise<string> => {
    const { idempotencyKey: _, owner: __, due: ___, reply: ____, replied: _________, cancelAsked: _____, keptBytes: ______, keptSince: _______, compacted: ________, long: __________, ...kept } = run, answer = withAnswer && !run.answerCut ? (run.answer ?? '') : undefined
    const id = clock.id(), twin: Run = { ...kept, id, sessionId, opensSession: opens, messageId: clock.id(), answerId: clock.id(), credits: 0, tidy: clock.now(), ...(answer === undefined ? { answerCut: true } : {}) }
    const told = [
      copied(run.id), ...(answer ? piecesOf(answer, tokenBytesMax).map(text => event('token', { text, step: 0, attempt: 1 })) : []),
      event('usage', { input_tokens: 0, output_tokens: 0, total_tokens: 0, credits: 0, model: run.model, model_calls: 0 }), event('done', { status: run.status === 'cancelled' ? 'cancelled' : 'done', session_id: sessionId }),
    ]
    // A long answer is more than one append takes.
    const log = eventlog.tenant(run), together = told.length > 4 ? 1 : told.length
    for (let at = 0; at < told.length; at += together) await log.append(streamOf(id), told.slice(at, at + together), { expect: at })
    await store.tenant(run).insert(Runs, await texts.stored(twin))
    return id
  }

  return {
    /** The fork appears when it is whole: the session is written last. A run under way stays where it is. */
    async branch(caller: Caller, sessionId: string, { message_id: messageId, title }: { message_id?: string; title?: string }) {
      const session = await sessions.find(caller, sessionId), own = store.tenant(caller)
      const at = messageId === undefined ? undefined : await runOf(own, sessionId, messageId)
      const { items: found } = await own.find(Runs, { where: { sessionId, phase: { in: ['placed', 'closed'] }, ...(at ? { id: { lte: at.run.id } } : {}) }, orderBy: ['id', 'desc'], limit: copiedMax })
      const id = clock.id(), now = clock.now(), taken = (await Promise.all(found.map(ended))).filter(({ phase }) => phase === 'closed').reverse()
      let latest = id
      for (const [i, run] of taken.entries()) latest = await copy(run, id, i === 0, !at || run.id !== at.run.id || at.isAnswer)
      const fork: Session = { id, orgId: caller.orgId, userId: caller.userId, title: title ?? session.title, appName: session.appName, latest, queue: [], queued: 0, paused: false, rev: 0, createdAt: now, updatedAt: now }
      await own.insert(Sessions, fork)
      return sessions.reply(fork)
    },

    /** The message stays, what follows it goes, the newest first: a crash in between leaves a conversation that is merely not cut back as far. SESSION_BUSY while a run is under way or waits. */
    async truncate(caller: Caller, sessionId: string, messageId: string) {
      await sessions.find(caller, sessionId)
      const own = store.tenant(caller), { run, isAnswer } = await runOf(own, sessionId, messageId)
      await unstick(own, sessionId, clock.now())
      if (!(await own.update(Sessions, sessionId, { set: { updatedAt: clock.now() } }, { if: { active: { exists: false }, queued: 0, deleting: { exists: false } } }))) throw fault('SESSION_BUSY')
      for (;;) {
        const { items } = await own.find(Runs, { where: { sessionId, phase: 'closed', id: { gt: run.id } }, orderBy: ['id', 'desc'], limit: 200 })
        if (items.length === 0) break
        for (const later of items) {
          for (const stream of streamsOf(later)) await eventlog.tenant(caller).remove(stream)
          await own.remove(Runs, later.id)
        }
      }
      if (!isAnswer) await own.update(Runs, run.id, { set: { answerCut: true } })
      return sessions.reply(await sessions.find(caller, sessionId))
    },

    /** Conversations that hold every word, the latest first. A page reads a bounded number of runs: it may be short, or empty, and still have a next one. */
    async search(caller: Caller, { q, limit = 50, cursor }: { q: string; limit?: number; cursor?: string }) {
      const words = wordsOf(q), own = store.tenant(caller), items: Static<typeof SearchHit>[] = []
      if (words.length === 0) throw fault('INVALID_FIELD', { field: 'q', why: 'holds no word' })
      let after = cursor, scanned = 0
      do {
        // One at a time: the cursor must stand behind the conversation that was looked at last.
        const page = await own.find(Sessions, { where: { userId: caller.userId, deleting: { exists: false } }, orderBy: ['updatedAt', 'desc'], limit: 1, ...(after === undefined ? {} : { after }) })
        for (const session of page.items) {
          const { items: runs } = await own.find(Runs, { where: { sessionId: session.id }, orderBy: ['id', 'desc'], limit: 200 })
          scanned += runs.length + 1
          const texts = runs.flatMap(run => [{ message_id: run.messageId, role: 'user' as const, text: run.request.message }, ...(run.answer && !run.answerCut ? [{ message_id: run.answerId, role: 'assistant' as const, text: run.answer }] : [])])
          const matches = texts.flatMap(({ message_id, role, text }) => { const excerpt = excerptAround(text, words); return excerpt === undefined ? [] : [{ message_id, role, excerpt }] })
          if (matches.length > 0 || excerptAround(session.title, words) !== undefined) items.push({ session: sessions.reply(session), matches: matches.slice(0, matchesMax) })
        }
        after = page.next
      } while (after !== undefined && scanned < scannedMax && items.length < limit)
      return { items, ...(after === undefined ? {} : { next_cursor: after }) }
    },
  }
}
