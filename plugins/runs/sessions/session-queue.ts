// Whose turn it is in a session. A run leaves, the next run gets its place, a pause ends, or a
// waiting run withdraws.
import { fault } from '#kernel'
import type { Store } from '#ports/storage.ts'
import { Runs, Sessions, type Run, type Session } from '../collections.ts'
import { triesMax } from './enqueue.ts'

type InSession = Pick<Run, 'id' | 'sessionId'>

/**
 * Returns the next queued run. Sets the run's `due` to 0, so that the sweep starts it if this
 * process dies before it wakes the run.
 * Takes a run that has ended out of the queue. `again`: the queue has changed, so read it again.
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
  // The run is still being admitted. Its admission finds that it is its turn.
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
 * Ends a run's turn and returns the next run. A repeated or late call changes nothing. `pause`:
 * pauses the queue if a run waits.
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
    // An earlier driver ended this turn. It may have died before it woke the next run.
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
 * Ends the turn of a run that has ended or is gone. A delayed admission or driver may have given
 * the session to such a run. Returns the next run.
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

/** Ends a pause, and returns the next run. */
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
 * Takes a queued run off the sweep's list. The run ahead of it, or whoever resumes the queue, wakes
 * it. Returns the run to wake, where one's turn has already come.
 * `run` was read before this call. The session's `rev` grows here: a hand-over that marked the run
 * before that read fails, and marks it again.
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

/** Takes a waiting run out of the queue. False: it is not in the queue. */
export async function withdraw(own: Store, run: InSession): Promise<boolean> {
  for (let tries = 0; tries < triesMax; tries++) {
    const session = await own.get(Sessions, run.sessionId)
    if (!session?.queue.includes(run.id)) return false
    if (await pull(own, session, run.id)) return true
  }
  throw fault('SESSION_BUSY')
}
