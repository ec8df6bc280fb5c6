// Jobs as documents on any storage: a lease is a time until which nobody else takes the job; where
// several processes share the storage, a heartbeat that stands still, for their clocks are not
// compared.
import { fault, hasCode } from '#contracts/faults.ts'
import { defineAdapter, type Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Depth, Job, JobOptions, JobState, Queue } from '#ports/queue.ts'
import { collection, type Change, type StorageEngine } from '#ports/storage.ts'
import type { Json } from '#ports/token.ts'
import { nextTime } from '../_shared/cron.ts'
import {
  checkedJobOptions,
  closeMsMax,
  keptMs,
  runLeased,
  type Lease,
} from '../_shared/job-lease.ts'

/**
 * `due` is when somebody may take it: the time to run while it waits, the end of the lease while it
 * runs, absent when it has ended.
 *  `active` holds the dedupe key as long as the job has not ended.
 */
type Row = {
  id: string
  name: string
  data: Json
  state: JobState
  attempt: number
  due?: number
  active?: string
  owner?: string
  error?: string
  expiresAt?: number
}
type Timetable = {
  id: string
  name: string
  data: Json
  cron: string
  timezone: string
  due: number
}
type World = { readonly storage: StorageEngine; readonly clock: Clock; readonly log: Log }
/** A job that runs here. `ended` by its signal's reason: a cancelled one is not tried again. */
type Running = { readonly abort: AbortController; readonly ended: Promise<void> }
type Worker = {
  wake(): void
  stop(): Promise<void>
  readonly running: ReadonlyMap<string, Running>
}

const jobs = collection<Row>({
  name: 'jobs',
  scope: 'platform',
  unique: [['active']],
  index: [['name', 'due'], ['owner']],
  expires: 'expiresAt',
})
const timetables = collection<Timetable>({
  name: 'timetables',
  scope: 'platform',
  index: [['due']],
})

/**
 * How soon another process's job is seen; where there is no other process, only a forgotten wake-up
 * waits so long.
 */
const pollMs = { shared: 1000, exclusive: 30_000 } as const
const retryMs = 1000
const firedAtOnce = 50
/** Of the jobs that others work on, so many are watched for a sign of life. */
const watchedMax = 200
/** Of the jobs under way, so many are read at a time to be counted. */
const countedAtOnce = 200

/**
 * Sleeps until woken or the time has come; `wake` before `sleep` makes the next sleep end at once.
 */
function createPause(clock: Clock) {
  let woken = false
  let sleeping: AbortController | undefined
  return {
    wake() {
      woken = true
      sleeping?.abort()
    },
    async sleep(ms: number) {
      if (!woken) {
        sleeping = new AbortController()
        await clock.sleep(ms, sleeping.signal).catch(() => {})
      }
      woken = false
      sleeping = undefined
    },
  }
}
const pollAfter = ({ storage, clock }: World): number =>
  (storage.exclusive ? pollMs.exclusive : pollMs.shared) * (0.75 + clock.random() / 2)

/**
 * Calls `turn`, which answers when it wants to be called again, until stopped. A failing storage
 * delays and ends nothing.
 */
function repeat(world: World, event: string, turn: () => Promise<number>) {
  const pause = createPause(world.clock)
  let stopped = false
  async function loop(): Promise<void> {
    while (!stopped) {
      let next: number
      try {
        next = await turn()
      } catch (error) {
        world.log('warn', event, { error: (error as Error).message })
        next = retryMs
      }
      if (!stopped) await pause.sleep(Math.max(0, next))
    }
  }
  const ended = loop()
  return {
    wake: pause.wake,
    stop() {
      stopped = true
      pause.wake()
      return ended
    },
  }
}

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

function createWorker(
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

/**
 * The job is written before the timetable moves on: after a crash between the two its id is taken
 * already.
 */
function createTimetables(world: World, enqueue: (row: Row) => Promise<string>) {
  const { storage, clock } = world
  const loop = repeat(world, 'queue.schedule_failed', async () => {
    const { items } = await storage.find(timetables, {
      orderBy: ['due', 'asc'],
      limit: firedAtOnce,
    })
    const ready = items.filter(({ due }) => due <= clock.now())
    for (const { id, name, data, cron, timezone, due } of ready) {
      await enqueue({
        id: `schedule:${id}@${due}`,
        name,
        data,
        state: 'waiting',
        attempt: 0,
        due: clock.now(),
      })
      await storage.update(
        timetables,
        id,
        { set: { due: nextTime(cron, timezone, clock.now()) } },
        { if: { due } },
      )
    }
    if (ready.length > 0) return 0
    return Math.min(pollAfter(world), (items[0]?.due ?? Infinity) - clock.now())
  })
  async function schedule(
    key: string,
    { name, data, cron, timezone }: Parameters<Queue['schedule']>[1],
  ): Promise<{ nextAt: number }> {
    const due = nextTime(cron, timezone, clock.now())
    const set = { name, data, cron, timezone, due }
    // The same times again keep what is due: a start of the server must not forget a time that was
    // missed.
    const kept = await storage.update(
      timetables,
      key,
      { set: { name, data } },
      { if: { cron, timezone } },
    )
    if (kept) return { nextAt: kept.due }
    if (!(await storage.update(timetables, key, { set }))) {
      try {
        await storage.insert(timetables, { id: key, ...set })
      } catch (error) {
        if (!hasCode(error, 'DUPLICATE')) throw error
        await storage.update(timetables, key, { set })
      }
    }
    loop.wake()
    return { nextAt: due }
  }
  return { schedule, stop: loop.stop }
}

function createQueue(world: World): Queue {
  const { storage, clock } = world
  const workers = new Set<Worker & { readonly name: string }>()
  let closed: Promise<void> | undefined
  const open = () => {
    if (closed !== undefined) throw fault('UNAVAILABLE', { what: 'The queue', why: 'it is closed' })
  }
  const wake = (name: string) => {
    for (const worker of workers) if (worker.name === name) worker.wake()
  }

  async function add(row: Row): Promise<string> {
    for (;;) {
      try {
        await storage.insert(jobs, row)
        wake(row.name)
        return row.id
      } catch (error) {
        if (!hasCode(error, 'DUPLICATE')) throw error
        if (row.active === undefined) return row.id
        // The one that holds the key may end between the two calls; then the way is free.
        const {
          items: [first],
        } = await storage.find(jobs, { where: { active: row.active }, limit: 1 })
        if (first) return first.id
      }
    }
  }
  const scheduler = createTimetables(world, add)

  async function close(): Promise<void> {
    const stopping = [...workers].map(worker => {
      for (const { abort } of worker.running.values()) abort.abort('closing')
      return worker.stop()
    })
    // A handler that does not heed its signal must not hold the server for ever; its lease runs
    // out.
    const waited = new AbortController()
    await Promise.race([
      Promise.all([...stopping, scheduler.stop()]),
      clock.sleep(closeMsMax, waited.signal).catch(() => {}),
    ])
    waited.abort()
  }

  return {
    define(name, handler, options = {}) {
      open()
      const wanted = checkedJobOptions(options)
      const worker = { name, ...createWorker(world, name, handler, wanted) }
      workers.add(worker)
      return () => worker.stop().finally(() => workers.delete(worker))
    },
    async enqueue(name, data, { runAt, dedupeKey } = {}) {
      open()
      return add({
        id: clock.id(),
        name,
        data,
        state: 'waiting',
        attempt: 0,
        due: runAt ?? clock.now(),
        ...(dedupeKey === undefined ? {} : { active: `${name} ${dedupeKey}` }),
      })
    },
    async schedule(key, timetable) {
      open()
      return scheduler.schedule(key, timetable)
    },
    async unschedule(key) {
      open()
      return storage.remove(timetables, key)
    },
    async cancel(id) {
      open()
      const change = {
        set: { state: 'cancelled', expiresAt: clock.now() + keptMs },
        unset: ['due', 'active'],
      }
      if (await storage.update(jobs, id, change, { if: { state: 'waiting' } })) return true
      for (const worker of workers) worker.running.get(id)?.abort.abort('cancelled')
      return false
    },
    async state(id) {
      open()
      return (await storage.get(jobs, id))?.state
    },
    async depth(names) {
      open()
      return depthOf(world, names)
    },
    async ping() {
      open()
      await storage.ping()
    },
    close: () => (closed ??= close()),
  }
}

/**
 * Only a job that runs has an owner, so that those are few; whatever has a time to wait for is
 * counted along the index of times.
 */
async function depthOf(
  { storage, clock }: World,
  names: readonly string[],
): Promise<Readonly<Record<string, Depth>>> {
  const now = clock.now()
  const running = new Map<string, { all: number; due: number }>()
  for (let after: string | undefined, isLast = false; !isLast; ) {
    const { items, next } = await storage.find(jobs, {
      where: { owner: { gt: '' } },
      orderBy: ['owner', 'asc'],
      limit: countedAtOnce,
      ...(after === undefined ? {} : { after }),
    })
    for (const { name, due } of items) {
      const { all, due: late } = running.get(name) ?? { all: 0, due: 0 }
      running.set(name, { all: all + 1, due: late + Number(due! <= now) })
    }
    isLast = (after = next) === undefined
  }
  return Object.fromEntries(
    await Promise.all(
      names.map(async name => {
        // One whose lease has run out is under way until somebody takes it over.
        const { all, due } = running.get(name) ?? { all: 0, due: 0 }
        return [
          name,
          {
            waiting: Math.max(0, (await storage.count(jobs, { name, due: { lte: now } })) - due),
            running: all,
          },
        ] as const
      }),
    ),
  )
}

export async function queueOn(storage: StorageEngine, clock: Clock, log: Log): Promise<Queue> {
  await storage.define(jobs)
  await storage.define(timetables)
  return createQueue({ storage, clock, log })
}

export default defineAdapter<Queue>({
  port: 'queue',
  scheme: 'storage',
  needs: ['storage'],
  open: ({ engine, clock, log }) => queueOn(engine<StorageEngine>('storage'), clock, log),
})
