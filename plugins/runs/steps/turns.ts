// Whose turn it is in a session: a run leaves, the next one is handed its place, a pause ends, a waiting run withdraws.
import { fault } from '#kernel'
import type { Store } from '#ports/storage.ts'
import { Runs, Sessions, type Run } from '../collections.ts'
import { triesMax } from './place.ts'

type InSession = Pick<Run, 'id' | 'sessionId'>

/** The sweep looks at the run from now on: whoever was about to wake it may die before. */
const remember = (own: Store, runId: string) => own.update(Runs, runId, { set: { due: 0 }, inc: { wakes: 1 } }, { if: { phase: 'placed' } })

/** Ends a run's turn and answers who is next. Repeating it, or coming late, changes nothing. `pause`: stop here if anybody waits. `closed`: the run will not be looked at again, so the next one must be. */
export async function leave(own: Store, run: InSession, { pause, closed = false, now }: { pause: boolean; closed?: boolean; now: number }): Promise<string | undefined> {
  const alone = await own.update(Sessions, run.sessionId, { unset: ['active'], set: { updatedAt: now } }, { if: { active: run.id, queued: 0 } })
  if (alone) return undefined
  for (let tries = 0; tries < triesMax; tries++) {
    const session = await own.get(Sessions, run.sessionId)
    // Handed over before, by a driver that may have died before it could wake the next one.
    if (!session || session.active !== run.id) return session?.active
    const next = session.queue[0]
    if (closed && next !== undefined) await remember(own, next)
    const change = next === undefined ? { unset: ['active'] } : pause ? { unset: ['active'], set: { paused: true, updatedAt: now } } : { set: { active: next, updatedAt: now }, pull: { queue: next }, inc: { queued: -1, rev: 1 } }
    if (await own.update(Sessions, session.id, change, { if: { active: run.id, rev: session.rev } })) return pause ? undefined : next
  }
  throw fault('SESSION_BUSY')
}

/** An admission or a driver that comes back from the dead may give a session to a run that has ended meanwhile: whoever finds that ends its turn. Answers who is next. */
export async function unstick(own: Store, sessionId: string, now: number): Promise<string | undefined> {
  const active = (await own.get(Sessions, sessionId))?.active
  if (active === undefined) return undefined
  const run = await own.get(Runs, active)
  return run && run.phase !== 'closed' ? undefined : leave(own, { id: active, sessionId }, { pause: false, closed: true, now })
}

/** Lets a paused queue go on; answers who is next. */
export async function unpause(own: Store, sessionId: string, now: number): Promise<string | undefined> {
  for (let tries = 0; tries < triesMax; tries++) {
    const session = await own.get(Sessions, sessionId)
    if (!session || !session.paused) return undefined
    const next = session.queue[0]
    if (next !== undefined) await remember(own, next)
    const change = next === undefined ? { set: { paused: false } } : { set: { paused: false, active: next, updatedAt: now }, pull: { queue: next }, inc: { queued: -1, rev: 1 } }
    if (await own.update(Sessions, sessionId, change, { if: { paused: true, rev: session.rev, active: { exists: false } } })) return next
  }
  throw fault('SESSION_BUSY')
}

/** A run in a queue is woken by the run ahead of it, or by whoever resumes the queue: the sweep need not look at it. Answers whom to wake, where it is somebody's turn already. */
export async function rest(own: Store, run: Run, now: number): Promise<string | undefined> {
  if ((await own.get(Sessions, run.sessionId))?.active === run.id) return run.id
  await own.update(Runs, run.id, { unset: ['due'] }, { if: { phase: 'placed', epoch: run.epoch, wakes: run.wakes, cancelAsked: { exists: false } } })
  if ((await own.get(Sessions, run.sessionId))?.active === run.id) return run.id
  return unstick(own, run.sessionId, now)
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
