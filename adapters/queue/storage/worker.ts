// Takes jobs of one name as they fall due, and works on several at a time.
import type { Change } from '#ports/storage.ts'
import type { Job, JobOptions } from '#ports/queue.ts'
import { keptMs, runLeased, type Lease } from '../lib/job-lease.ts'
import { pollAfter, repeat } from './poll.ts'
import { jobs, type Row, type World } from './rows.ts'

/** A job that runs here. `ended` by its signal's reason: a cancelled one is not tried again. */
type Running = { readonly abort: AbortController; readonly ended: Promise<void> }
export type Worker = {
  wake(): void
  stop(): Promise<void>
  readonly running: ReadonlyMap<string, Running>
}

/** Of the jobs that others work on, so many are watched for a sign of life. */
const watchedMax = 200

/** Only where this owner still holds the job. */
function leaseOf(
  { storage, clock }: World,
  { id, attempt }: Row,
  owner: string,
  leaseMs: number,
): Lease {
  const write = async (change: Change) =>
    (await storage.update(jobs, id, change, { if: { owner } })) !== undefined
  return {
    heartbeat: () => write({ set: { due: clock.now() + leaseMs } }),
    async finish(state, error) {
      await write({
        set: { state, expiresAt: clock.now() + keptMs, ...(error === undefined ? {} : { error }) },
        unset: ['due', 'active', 'owner'],
      })
    },
    async putBack(error, afterMs) {
      await write({
        set: {
          state: 'waiting',
          due: clock.now() + (afterMs ?? 0),
          attempt: afterMs === undefined ? attempt - 1 : attempt,
          error,
        },
        unset: ['owner'],
      })
    },
  }
}

export function createWorker(
  world: World,
  name: string,
  handler: (job: Job) => Promise<void>,
  options: Required<JobOptions>,
): Worker {
  const { storage, clock, log } = world
  const running = new Map<string, Running>()
  const beats = new Map<
    string,
    { readonly due: number | undefined; readonly attempt: number; readonly since: number }
  >()
  let taking = true
  let lookedAt = Number.NEGATIVE_INFINITY

  async function take(row: Row): Promise<void> {
    const owner = clock.id()
    const change = {
      set: { state: 'running', owner, due: clock.now() + options.leaseMs },
      inc: { attempt: 1 },
    }
    const taken = await storage.update(jobs, row.id, change, {
      if: { due: row.due!, attempt: row.attempt },
    })
    if (!taken) return
    const lease = leaseOf(world, taken, owner, options.leaseMs)
    // Its workers died with it time after time.
    if (taken.attempt > options.attemptsMax)
      return lease.finish('failed', row.error ?? 'the lease ran out')
    const abort = new AbortController()
    const ended = runLeased({ clock, log, lease, handler, options, abort }, taken)
      .catch((error: Error) =>
        log('warn', 'queue.job_unsettled', { job: row.id, name, error: error.message }),
      )
      .finally(() => {
        // A job whose lease was lost may run here a second time by now.
        if (running.get(row.id)?.abort === abort) running.delete(row.id)
        loop.wake()
      })
    running.set(row.id, { abort, ended })
  }
  /**
   * Jobs of workers that have not moved them on for a lease's length by this process's own steady
   * clock.
   *  They are found by their owners: along the times, the whole backlog lies before them.
   */
  async function takeOver(free: number): Promise<void> {
    const now = clock.monotonic()
    if (now - lookedAt < options.leaseMs / 4) return
    lookedAt = now
    const { items } = await storage.find(jobs, {
      where: { name, owner: { gt: '' } },
      orderBy: ['owner', 'asc'],
      limit: watchedMax,
    })
    const before = new Map(beats)
    beats.clear()
    for (const row of items) {
      if (running.has(row.id)) continue
      const seen = before.get(row.id)
      const observed =
        seen?.due === row.due && seen?.attempt === row.attempt
          ? seen!
          : { due: row.due, attempt: row.attempt, since: now }
      beats.set(row.id, observed)
      if (now - observed.since >= options.leaseMs && taking && free-- > 0) await take(row)
    }
  }
  async function turn(): Promise<number> {
    const idle = () => options.concurrency - running.size
    if (!taking || idle() <= 0) return pollAfter(world)
    // Before the waiting ones: a backlog that never ends would keep dead workers' jobs where they
    // are.
    if (!storage.exclusive) await takeOver(idle())
    const free = idle()
    if (free <= 0) return pollAfter(world)
    const { items } = await storage.find(jobs, {
      where: { name, ...(storage.exclusive ? {} : { state: 'waiting' }) },
      orderBy: ['due', 'asc'],
      limit: free,
    })
    const ready = items.filter(({ due }) => due! <= clock.now())
    for (const row of ready) if (taking) await take(row)
    if (ready.length === free) return 0
    const later = items[ready.length]?.due
    return Math.min(pollAfter(world), later === undefined ? Infinity : later - clock.now())
  }
  const loop = repeat(world, 'queue.poll_failed', turn)
  return {
    running,
    wake: loop.wake,
    async stop() {
      taking = false
      await loop.stop()
      await Promise.all([...running.values()].map(({ ended }) => ended))
    },
  }
}
