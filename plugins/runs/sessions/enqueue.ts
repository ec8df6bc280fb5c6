// Gives a run its place in its session: in progress, in the queue, or behind a pause. It is one
// conditional update of one document.
import { fault, hasCode } from '#kernel'
import type { Store } from '#ports/storage.ts'
import { Sessions, emptyQueue, type Run, type Session } from '../collections.ts'

export type Placed = {
  readonly status: 'running' | 'queued' | 'blocked'
  readonly queueSeq: number
}
const titleCharsMax = 80
/** How often the session is read again while other processes change it. */
export const triesMax = 100

const titleOf = (message: string) => {
  const line = message.trim().split('\n', 1)[0]!.trim()
  return line.length > titleCharsMax ? `${line.slice(0, titleCharsMax - 1)}…` : line || 'Untitled'
}

/** The run's place. Undefined: it is neither in progress nor in the queue. */
export function standing(session: Session, runId: string): Placed | undefined {
  if (session.active === runId) return { status: 'running', queueSeq: 0 }
  const at = session.queue.indexOf(runId)
  return at < 0 ? undefined : { status: session.paused ? 'blocked' : 'queued', queueSeq: at + 1 }
}

/**
 * Throws NOT_FOUND when the session was removed, and QUEUE_FULL when too many runs wait. May be
 * repeated.
 */
export async function enqueue(
  own: Store,
  run: Run,
  { queueMax, now }: { queueMax: number; now: number },
): Promise<Placed> {
  if (run.opensSession) {
    try {
      const { sessionId: id, orgId, userId } = run
      await own.insert(Sessions, {
        id,
        orgId,
        userId,
        title: titleOf(run.request.message),
        appName: run.request.app_name,
        latest: run.id,
        active: run.id,
        ...emptyQueue(),
        createdAt: now,
        updatedAt: now,
      })
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
    const latest = session.latest > run.id ? session.latest : run.id
    if (session.active === undefined && !session.paused && session.queued === 0) {
      const taken = await own.update(
        Sessions,
        session.id,
        { set: { active: run.id, latest, updatedAt: now }, inc: { rev: 1 } },
        {
          if: { active: { exists: false }, paused: false, queued: 0, deleting: { exists: false } },
        },
      )
      if (taken) return { status: 'running', queueSeq: 0 }
    } else {
      if (session.queued >= queueMax) throw fault('QUEUE_FULL', { max: queueMax })
      // A run may join only behind an active run or a pause: these wake it later. `rev` ensures
      // that the queue is unchanged, because a second admission of the same run may have joined it.
      const holds = session.paused ? { paused: true } : { paused: false, active: { exists: true } }
      const joined = await own.update(
        Sessions,
        session.id,
        { push: { queue: run.id }, inc: { queued: 1, rev: 1 }, set: { latest, updatedAt: now } },
        { if: { ...holds, rev: session.rev, deleting: { exists: false } } },
      )
      if (joined) return { status: joined.paused ? 'blocked' : 'queued', queueSeq: joined.queued }
    }
  }
  throw fault('SESSION_BUSY')
}
