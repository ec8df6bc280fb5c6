// Whose turn it is in a session: a run leaves, the next one is handed its place, a pause ends, a
// waiting run withdraws.
import { fault } from '#kernel'
import type { Store } from '#ports/storage.ts'
import { Runs, Sessions, type Run, type Session } from '../collections.ts'
import { triesMax } from './enqueue.ts'

type InSession = Pick<Run, 'id' | 'sessionId'>

/**
 * Who is next, remembered: the sweep looks at it from now on, for whoever was about to wake it may
 * die before. What has ended while it stood in the queue is taken out. `again`: the queue has
 * changed.
 */
async function nextOf(own: Store, session: Session): Promise<{ next?: string; again?: true }> {
  const next = session.queue[0]
  if (
    next === undefined ||
    (await own.update(
      Runs,
      next,
      { set: { due: 0 }, inc: { wakes: 1 } },
      { if: { phase: 'placed' } },
    ))
  )
    return next === undefined ? {} : { next }
  const phase = (await own.get(Runs, next))?.phase
  // Its admission goes on, and finds its turn.
  if (phase === 'admitting') return { next }
  if (phase !== 'placed') await pull(own, session, next)
  return { again: true }
}
const pull = (own: Store, session: Session, runId: string) =>
  own.update(
    Sessions,
    session.id,
    { pull: { queue: runId }, inc: { queued: -1, rev: 1 } },
    { if: { rev: session.rev } },
  )
const handing = (next: string, now: number) => ({
  set: { active: next, updatedAt: now },
  pull: { queue: next },
  inc: { queued: -1, rev: 1 },
})

/**
 * Ends a run's turn and answers who is next. Repeating it, or coming late, changes nothing.
 * `pause`: stop here if anybody waits.
 */
export async function leave(
  own: Store,
  run: InSession,
  { pause, now }: { pause: boolean; now: number },
): Promise<string | undefined> {
  const alone = await own.update(
    Sessions,
    run.sessionId,
    { unset: ['active'], set: { updatedAt: now }, inc: { rev: 1 } },
    { if: { active: run.id, queued: 0 } },
  )
  if (alone) return undefined
  for (let tries = 0; tries < triesMax; tries++) {
    const session = await own.get(Sessions, run.sessionId)
    // Handed over before, by a driver that may have died before it could wake the next one.
    if (!session || session.active !== run.id) return session?.active
    const { next, again } = await nextOf(own, session)
    if (again) continue
    const change =
      next === undefined
        ? { unset: ['active'], inc: { rev: 1 } }
        : pause
          ? { unset: ['active'], set: { paused: true, updatedAt: now }, inc: { rev: 1 } }
          : handing(next, now)
    if (
      await own.update(Sessions, session.id, change, { if: { active: run.id, rev: session.rev } })
    )
      return pause ? undefined : next
  }
  throw fault('SESSION_BUSY')
}

/**
 * An admission or a driver that comes back from the dead may give a session to a run that has ended
 * meanwhile: whoever finds that ends its turn. Answers who is next.
 */
export async function unstick(
  own: Store,
  sessionId: string,
  now: number,
): Promise<string | undefined> {
  const active = (await own.get(Sessions, sessionId))?.active
  if (active === undefined) return undefined
  const run = await own.get(Runs, active)
  return run && run.phase !== 'closed'
    ? undefined
    : leave(own, { id: active, sessionId }, { pause: false, now })
}

/** Lets a paused queue go on; answers who is next. */
export async function unpause(
  own: Store,
  sessionId: string,
  now: number,
): Promise<string | undefined> {
  for (let tries = 0; tries < triesMax; tries++) {
    const session = await own.get(Sessions, sessionId)
    if (!session || !session.paused || session.deleting) return undefined
    const { next, again } = await nextOf(own, session)
    if (again) continue
    const { set, ...change } =
      next === undefined ? { set: {}, inc: { rev: 1 } } : handing(next, now)
    if (
      await own.update(
        Sessions,
        sessionId,
        { ...change, set: { ...set, paused: false } },
        { if: { paused: true, rev: session.rev, active: { exists: false } } },
      )
    )
      return next
  }
  throw fault('SESSION_BUSY')
}

/**
 * A run in a queue is woken by the run ahead of it, or by whoever resumes the queue: the sweep need
 * not look at it. Answers whom to wake, where it is somebody's turn already.
 * `run` was read before. The session's `rev` moves here, so that whoever is about to hand over, and
 * remembered the run before it was read, must remember it again.
 */
export async function rest(own: Store, run: Run, now: number): Promise<string | undefined> {
  if ((await own.update(Sessions, run.sessionId, { inc: { rev: 1 } }))?.active === run.id)
    return run.id
  const next = await unstick(own, run.sessionId, now)
  if (next === undefined)
    await own.update(
      Runs,
      run.id,
      { unset: ['due'] },
      {
        if: { phase: 'placed', epoch: run.epoch, wakes: run.wakes, cancelAsked: { exists: false } },
      },
    )
  return next
}

/** Takes a waiting run out of the queue; false when it is not there (any more). */
export async function withdraw(own: Store, run: InSession): Promise<boolean> {
  for (let tries = 0; tries < triesMax; tries++) {
    const session = await own.get(Sessions, run.sessionId)
    if (!session?.queue.includes(run.id)) return false
    if (await pull(own, session, run.id)) return true
  }
  throw fault('SESSION_BUSY')
}
