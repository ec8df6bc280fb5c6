// Conversations: listing, reading, renaming and removing them, and their messages.
import type { Static } from 'typebox'
import type { Message, Session as SessionReply } from '#contracts/sessions.ts'
import { fault, type Caller } from '#kernel'
import type { Ledger } from '#ports/billing.ts'
import type { Clock } from '#ports/clock.ts'
import type { Eventlog, ScopedEventlog } from '#ports/eventlog.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { shown } from '../journal/compact.ts'
import { Runs, Sessions, streamOf, type Run, type Session } from '../collections.ts'
import type { ArtifactsApi, UploadsApi } from '../../files/api.ts'
import type { SeenEnded } from '../journal/outcome.ts'
import type { RunsConfig } from '../config.ts'
import { copiedEvents, removeRuns, withTexts, type ReadTexts } from './copies.ts'
import { runSummary } from '../run-summary.ts'
import { placeOf } from './transcript-passages.ts'
import type { Transcripts } from './transcripts.ts'
import { giveBack } from '../journal/hold.ts'
import { unstick } from './session-queue.ts'
import type { Texts } from '../journal/texts.ts'

type Paging = { limit?: number; cursor?: string }
type Deps = {
  store: ScopedStorage
  eventlog: ScopedEventlog
  clock: Clock
  billing: Ledger
  runs: { resumeQueue(caller: Caller, sessionId: string): Promise<unknown> }
  ended: SeenEnded
  uploads: UploadsApi
  artifacts: ArtifactsApi
  readTexts: ReadTexts
  texts: Texts
  transcripts: Transcripts
  config: RunsConfig
}
/** How many of the latest runs, and of the newest run's events, `GET /sessions/{id}` returns. */
const recentRuns = 20
const recentEvents = 200

const iso = (at: number) => new Date(at).toISOString()
const sessionReply = (session: Session): Static<typeof SessionReply> => ({
  id: session.id,
  title: session.title,
  app_name: session.appName,
  status: session.active ? 'running' : session.paused ? 'paused' : 'idle',
  active_run_id: session.active ?? null,
  queued: session.queued,
  created_at: iso(session.createdAt),
  updated_at: iso(session.updatedAt),
})
const messagesOf = (run: Run): Static<typeof Message>[] => [
  {
    id: run.messageId,
    run_id: run.id,
    role: 'user',
    content: run.request.message,
    status: run.status,
    created_at: iso(run.createdAt),
  },
  ...(run.phase === 'closed' && !run.answerCut
    ? [
        {
          id: run.answerId,
          run_id: run.id,
          role: 'assistant' as const,
          content: run.answer ?? '',
          status: run.status,
          created_at: iso(run.endedAt ?? run.createdAt),
        },
      ]
    : []),
]
const paged = ({ limit = 50, cursor }: Paging) => ({
  limit,
  ...(cursor === undefined ? {} : { after: cursor }),
})
const cursorOf = (next: string | undefined) => (next === undefined ? {} : { next_cursor: next })

export function createSessions({
  store,
  eventlog,
  clock,
  billing,
  runs,
  ended,
  uploads,
  artifacts,
  readTexts,
  texts,
  transcripts,
  config,
}: Deps) {
  const find = async (caller: Caller, id: string): Promise<Session> => {
    const session = await store.tenant(caller).get(Sessions, id)
    if (!session || session.userId !== caller.userId || session.deleting)
      throw fault('NOT_FOUND', { what: 'session' })
    return session
  }
  const runsOf = async (caller: Caller, ids: readonly string[]): Promise<Run[]> => {
    const own = store.tenant(caller)
    return (await Promise.all(ids.map(id => own.get(Runs, id)))).filter(run => run !== undefined)
  }
  const recentOf = async (
    log: Eventlog,
    run: Run,
  ): Promise<readonly { seq: number; type: string; data: unknown }[]> => {
    if (run.copied) return copiedEvents((await readTexts(run, [run]))[0]!)
    const stream = streamOf(run.id)
    return shown(
      await log.read(stream, {
        after: Math.max(0, (await log.bounds(stream)).last - recentEvents),
        limit: recentEvents,
      }),
      0,
    )
  }
  return {
    /** Throws NOT_FOUND unless the session is the caller's. */
    find,
    reply: sessionReply,
    async list(caller: Caller, paging: Paging) {
      const { items, next } = await store.tenant(caller).find(Sessions, {
        where: { userId: caller.userId, deleting: { exists: false } },
        orderBy: ['updatedAt', 'desc'],
        ...paged(paging),
      })
      return { items: items.map(sessionReply), ...cursorOf(next) }
    },
    async read(caller: Caller, id: string) {
      const session = await find(caller, id)
      const log = eventlog.tenant(caller)
      const { items } = await store
        .tenant(caller)
        .find(Runs, { where: { sessionId: id }, orderBy: ['id', 'desc'], limit: recentRuns })
      // The run in progress. Waiting runs have no events yet.
      const active =
        items.find(run => run.id === session.active) ??
        (session.active === undefined ? undefined : (await runsOf(caller, [session.active]))[0])
      const latest = active ?? items[0]
      const events = (latest ? await recentOf(log, latest) : []).map(({ seq, type, data }) => ({
        run_id: latest!.id,
        seq,
        type,
        data,
      }))
      return {
        ...sessionReply(session),
        runs: (await Promise.all(items.map(run => ended(run, 'summary')))).map(runSummary),
        events,
      }
    },
    async rename(caller: Caller, id: string, title: string) {
      await find(caller, id)
      const session = await store
        .tenant(caller)
        .update(
          Sessions,
          id,
          { set: { title, updatedAt: clock.now(), unindexed: clock.now() } },
          { if: { deleting: { exists: false } } },
        )
      if (!session) throw fault('NOT_FOUND', { what: 'session' })
      transcripts.renamed(session)
      return sessionReply(session)
    },
    /**
     * Removes a conversation in three stages: close its queue, remove its runs, remove the session.
     * After a crash, the same request goes on.
     */
    async remove(caller: Caller, id: string): Promise<void> {
      const session = await store.tenant(caller).get(Sessions, id)
      const own = store.tenant(caller)
      if (!session || session.userId !== caller.userId)
        throw fault('NOT_FOUND', { what: 'session' })
      const shut = { set: { deleting: true }, inc: { rev: 1 } }
      const idle = { active: { exists: false } }
      // A paused session has no driver, and gets none: whoever resumes the queue finds that it has
      // changed.
      const close = async () =>
        (await own.update(Sessions, id, shut, { if: { ...idle, queued: 0 } })) ??
        own.update(Sessions, id, shut, { if: { ...idle, paused: true } })
      if (!(await close())) {
        await unstick(own, id, clock.now())
        if (!(await close())) throw fault('SESSION_BUSY')
      }
      const forget = await transcripts.removing(caller, placeOf.session(session))
      for (;;) {
        const { items } = await own.find(Runs, { where: { sessionId: id }, limit: 200 })
        if (items.length === 0) break
        for (const run of items) if (run.phase !== 'closed') await giveBack(billing, run)
        await removeRuns(own, { log: eventlog.tenant(caller), texts, now: clock.now() }, items)
      }
      await uploads.removeOfSession({ orgId: caller.orgId, userId: caller.userId }, id)
      await own.remove(Sessions, id)
      forget()
    },
    /**
     * A page of `limit` messages is half as many runs: each has a request and an answer. The page
     * is shorter where the texts are long.
     */
    async messages(caller: Caller, id: string, { limit = 50, cursor }: Paging) {
      await find(caller, id)
      const page = (count: number) =>
        store.tenant(caller).find(Runs, {
          where: { sessionId: id },
          ...paged({ limit: count, ...(cursor === undefined ? {} : { cursor }) }),
        })
      const { items, next } = await page(Math.ceil(limit / 2))
      const messages: Static<typeof Message>[] = []
      let runsShown = 0
      let chars = 0
      for await (const run of withTexts(caller, items, { ended, readTexts })) {
        const both = messagesOf(run)
        chars += both.reduce((sum, { content }) => sum + content.length, 0)
        if (runsShown > 0 && chars > config.page_chars_max) break
        messages.push(...both)
        runsShown++
      }
      // The cursor is the storage's own. Where the page ends early, it comes from a query that ends
      // at the same run.
      return {
        items: messages,
        ...cursorOf(runsShown < items.length ? (await page(runsShown)).next : next),
      }
    },
    async artifacts(caller: Caller, id: string, paging: Paging) {
      await find(caller, id)
      return artifacts.list(caller, id, paging)
    },
    async queue(caller: Caller, id: string) {
      const session = await find(caller, id)
      const waiting = await runsOf(caller, session.queue)
      return {
        paused: session.paused,
        active_run_id: session.active ?? null,
        items: waiting.map((run, i) => ({
          ...runSummary(run),
          status: session.paused ? ('blocked' as const) : ('queued' as const),
          queue_seq: i + 1,
        })),
      }
    },
    async resumeQueue(caller: Caller, id: string) {
      await find(caller, id)
      await runs.resumeQueue(caller, id)
      return sessionReply(await find(caller, id))
    },
  }
}
export type SessionService = ReturnType<typeof createSessions>
