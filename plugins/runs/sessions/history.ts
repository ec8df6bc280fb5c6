// Forks a conversation at a message, or cuts it back to one.
import { fault, type Caller } from '#kernel'
import type { Clock } from '#ports/clock.ts'
import type { ScopedEventlog } from '#ports/eventlog.ts'
import type { ScopedStorage, Store } from '#ports/storage.ts'
import { Runs, Sessions, type Run, type Session } from '../collections.ts'
import type { SeenEnded } from '../journal/outcome.ts'
import { hasSources, removeRuns } from './copies.ts'
import type { Quota } from '../retention/run-quota.ts'
import type { SessionService } from './sessions.ts'
import { unstick } from './session-queue.ts'
import type { Texts } from '../journal/texts.ts'
import { placeOf } from './transcript-passages.ts'
import type { Transcripts } from './transcripts.ts'

type Deps = {
  store: ScopedStorage
  eventlog: ScopedEventlog
  clock: Clock
  sessions: SessionService
  ended: SeenEnded
  transcripts: Transcripts
  quota: Quota
  texts: Texts
}
/** How many exchanges a fork copies at most, counted from the latest. */
const copiedMax = 500

/** The run that a message belongs to, and whether it is the answer. */
async function runOf(
  own: Store,
  sessionId: string,
  messageId: string,
): Promise<{ run: Run; isAnswer: boolean }> {
  for (const [field, isAnswer] of [
    ['messageId', false],
    ['answerId', true],
  ] as const) {
    const {
      items: [run],
    } = await own.find(Runs, { where: { sessionId, [field]: messageId }, limit: 1 })
    if (run) return { run, isAnswer }
  }
  throw fault('NOT_FOUND', { what: 'message of this session (message_id)' })
}

/**
 * A copy of a closed run for another conversation. Its work, its bill and its texts stay with the
 * source.
 */
const copyOf = (
  run: Run,
  ids: Pick<Run, 'id' | 'messageId' | 'answerId' | 'sessionId' | 'opensSession'>,
  isCut: boolean,
): Run => {
  const {
    orgId,
    userId,
    phase,
    status,
    epoch,
    beat,
    request,
    model,
    price,
    terms,
    hold,
    wakes,
    replies,
    createdAt,
    endedAt,
  } = run
  return {
    ...ids,
    orgId,
    userId,
    phase,
    status,
    epoch,
    beat,
    model,
    price,
    hold,
    wakes,
    replies,
    createdAt,
    ...(endedAt === undefined ? {} : { endedAt }),
    credits: 0,
    request: { ...request, message: '' },
    terms: { ...terms, instruction: '' },
    copied: true,
    source: run.source ?? run.id,
    ...(isCut || run.answerCut ? { answerCut: true } : {}),
  }
}

export function createHistory({
  store,
  eventlog,
  clock,
  sessions,
  ended,
  transcripts,
  quota,
  texts,
}: Deps) {
  return {
    /**
     * Creates a fork. It appears only when it is complete, because the session is written last. A
     * run under way is not copied.
     */
    async branch(
      caller: Caller,
      sessionId: string,
      { message_id: messageId, title }: { message_id?: string; title?: string },
    ) {
      const session = await sessions.find(caller, sessionId)
      const own = store.tenant(caller)
      await quota.requireRoom(caller)
      const at = messageId === undefined ? undefined : await runOf(own, sessionId, messageId)
      const { items: found } = await own.find(Runs, {
        where: {
          sessionId,
          phase: { in: ['placed', 'closed'] },
          ...(at ? { id: { lte: at.run.id } } : {}),
        },
        orderBy: ['id', 'desc'],
        limit: copiedMax,
      })
      const id = clock.id()
      const now = clock.now()
      const taken = (await Promise.all(found.map(run => ended(run, 'summary'))))
        .filter(({ phase }) => phase === 'closed')
        .reverse()
      const copies = taken.map((run, i) =>
        copyOf(
          run,
          {
            id: clock.id(),
            messageId: clock.id(),
            answerId: clock.id(),
            sessionId: id,
            opensSession: i === 0,
          },
          run.id === at?.run.id && !at.isAnswer,
        ),
      )
      const { error } =
        copies.length === 0 ? { error: undefined } : await own.insertMany(Runs, copies)
      if (error) throw error
      if (!(await hasSources(own, copies))) {
        // A copy may have inherited texts meanwhile, and other copies may name it.
        const { items } = await own.find(Runs, { where: { sessionId: id }, limit: copiedMax })
        await removeRuns(own, { log: eventlog.tenant(caller), texts, now: clock.now() }, items)
        throw fault('CONFLICT', { why: 'the conversation was cut back meanwhile' })
      }
      const fork: Session = {
        id,
        orgId: caller.orgId,
        userId: caller.userId,
        title: title ?? session.title,
        appName: session.appName,
        latest: copies.at(-1)?.id ?? id,
        queue: [],
        queued: 0,
        paused: false,
        rev: 0,
        createdAt: now,
        updatedAt: now,
        unindexed: now,
      }
      await own.insert(Sessions, fork)
      transcripts.renamed(fork)
      return sessions.reply(fork)
    },

    /**
     * Keeps the message and removes what follows it, the newest first. So a crash in between leaves
     * a conversation without gaps. Throws SESSION_BUSY while a run is under way or waits.
     */
    async truncate(caller: Caller, sessionId: string, messageId: string) {
      await sessions.find(caller, sessionId)
      const own = store.tenant(caller)
      const { run, isAnswer } = await runOf(own, sessionId, messageId)
      await unstick(own, sessionId, clock.now())
      if (
        !(await own.update(
          Sessions,
          sessionId,
          { set: { updatedAt: clock.now() } },
          { if: { active: { exists: false }, queued: 0, deleting: { exists: false } } },
        ))
      )
        throw fault('SESSION_BUSY')
      for (;;) {
        const { items } = await own.find(Runs, {
          where: { sessionId, phase: 'closed', id: { gt: run.id } },
          orderBy: ['id', 'desc'],
          limit: 200,
        })
        if (items.length === 0) break
        const forget = await Promise.all(
          items.map(gone => transcripts.removing(caller, placeOf.run(gone))),
        )
        await removeRuns(own, { log: eventlog.tenant(caller), texts, now: clock.now() }, items)
        for (const one of forget) one()
      }
      if (!isAnswer) {
        await own.update(Runs, run.id, { set: { answerCut: true, unindexed: clock.now() } })
        transcripts.note(run)
      }
      return sessions.reply(await sessions.find(caller, sessionId))
    },
  }
}
