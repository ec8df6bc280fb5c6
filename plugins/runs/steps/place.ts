// A run's place in its session: in progress, in the queue, or behind a pause. One document, one conditional update.
import { fault, hasCode } from '#kernel'
import type { Store } from '#ports/storage.ts'
import { Runs, Sessions, type Run, type Session } from '../collections.ts'

export type Placed = { readonly status: 'running' | 'queued' | 'blocked'; readonly queueSeq: number }
const titleCharsMax = 80
/** Somebody else changes the same session: so often is it looked at again. */
const triesMax = 100

const titleOf = (message: string) => {
  const line = message.trim().split('\n', 1)[0]!.trim()
  return line.length > titleCharsMax ? `${line.slice(0, titleCharsMax - 1)}…` : line || 'Untitled'
}

/** Where the run already stands, from an earlier try. */
function standing(session: Session, runId: string): Placed | undefined {
  if (session.active === runId) return { status: 'running', queueSeq: 0 }
  const at = session.queue.indexOf(runId)
  return at < 0 ? undefined : { status: session.paused ? 'blocked' : 'queued', queueSeq: at + 1 }
}

/** NOT_FOUND when the session went away, QUEUE_FULL when too many wait. May be repeated. */
export async function place(own: Store, run: Run, { queueMax, now }: { queueMax: number; now: number }): Promise<Placed> {
  if (run.opensSession) {
    try {
      const { sessionId: id, orgId, userId } = run
      await own.insert(Sessions, { id, orgId, userId, title: titleOf(run.request.message), appName: run.request.app_name, active: run.id, queue: [], queued: 0, paused: false, rev: 0, createdAt: now, updatedAt: now })
      return { status: 'running', queueSeq: 0 }
    } catch (error) {
      if (!hasCode(error, 'DUPLICATE')) throw error
    }
  }
  for (let tries = 0; tries < triesMax; tries++) {
    const session = await own.get(Sessions, run.sessionId)
    if (!session || session.deleting) throw fault('NOT_FOUND', { what: 'session' })
    const stands = standing(session, run.id)
    if (stands) return stands
    if (session.active === undefined && !session.paused && session.queued === 0) {
      const taken = await own.update(Sessions, session.id, { set: { active: run.id, updatedAt: now } }, { if: { active: { exists: false }, paused: false, queued: 0, deleting: { exists: false } } })
      if (taken) return { status: 'running', queueSeq: 0 }
    } else {
      if (session.queued >= queueMax) throw fault('QUEUE_FULL', { max: queueMax })
      // Somebody must be there to take from the queue, or a pause that will end.
      const holds = session.paused ? { paused: true } : { paused: false, active: { exists: true } }
      const joined = await own.update(Sessions, session.id, { push: { queue: run.id }, inc: { queued: 1, rev: 1 }, set: { updatedAt: now } }, { if: { ...holds, queued: { lt: queueMax }, deleting: { exists: false } } })
      if (joined) return { status: joined.paused ? 'blocked' : 'queued', queueSeq: joined.queued }
    }
  }
  throw fault('SESSION_BUSY')
}

/** Ends a run's turn and answers who is next. Repeating it, or coming late, changes nothing. `pause`: stop here if anybody waits. */
export async function leave(own: Store, run: Run, { pause, now }: { pause: boolean; now: number }): Promise<string | undefined> {
  const alone = await own.update(Sessions, run.sessionId, { unset: ['active'], set: { updatedAt: now } }, { if: { active: run.id, queued: 0 } })
  if (alone) return undefined
  for (let tries = 0; tries < triesMax; tries++) {
    const session = await own.get(Sessions, run.sessionId)
    // Handed over before, by a driver that may have died before it could wake the next one.
    if (!session || session.active !== run.id) return session?.active
    const next = session.queue[0]
    const change = next === undefined ? { unset: ['active'] } : pause ? { unset: ['active'], set: { paused: true, updatedAt: now } } : { set: { active: next, updatedAt: now }, pull: { queue: next }, inc: { queued: -1, rev: 1 } }
    if (await own.update(Sessions, session.id, change, { if: { active: run.id, rev: session.rev } })) return pause ? undefined : next
  }
  throw fault('SESSION_BUSY')
}

/** Lets a paused queue go on; answers who is next. `before` is told of it first, so that it is not forgotten if we die in between. */
export async function unpause(own: Store, sessionId: string, now: number, before: (runId: string) => Promise<unknown>): Promise<string | undefined> {
  for (let tries = 0; tries < triesMax; tries++) {
    const session = await own.get(Sessions, sessionId)
    if (!session || !session.paused) return undefined
    const next = session.queue[0]
    if (next !== undefined) await before(next)
    const change = next === undefined ? { set: { paused: false } } : { set: { paused: false, active: next, updatedAt: now }, pull: { queue: next }, inc: { queued: -1, rev: 1 } }
    if (await own.update(Sessions, sessionId, change, { if: { paused: true, rev: session.rev, active: { exists: false } } })) return next
  }
  throw fault('SESSION_BUSY')
}

/** A run in a queue is woken by the run ahead of it, or by whoever resumes the queue: the sweep need not look at it. True when it is its turn already. */
export async function rest(own: Store, run: Run): Promise<boolean> {
  if ((await own.get(Sessions, run.sessionId))?.active === run.id) return true
  await own.update(Runs, run.id, { unset: ['due'] }, { if: { phase: 'placed', epoch: run.epoch, wakes: run.wakes, cancelAsked: { exists: false } } })
  return (await own.get(Sessions, run.sessionId))?.active === run.id
}

/** Takes a waiting run out of the queue; false when it is not there (any more). */
export async function withdraw(own: Store, run: Run): Promise<boolean> {
  for (let tries = 0; tries < triesMax; tries++) {
    const session = await own.get(Sessions, run.sessionId)
    if (!session?.queue.includes(run.id)) return false
    if (await own.update(Sessions, session.id, { pull: { queue: run.id }, inc: { queued: -1, rev: 1 } }, { if: { rev: session.rev } })) return true
  }
  throw fault('SESSION_BUSY')
}
