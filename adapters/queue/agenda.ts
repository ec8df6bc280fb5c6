// Jobs by Agenda (https://github.com/agenda/agenda) in MongoDB: it looks for what is due and claims
// it. Leases, tries and what becomes of a job are the platform's, since Agenda has no fence against
// a worker that lost its lock.
import { fault } from '#contracts/faults.ts'
import { defineAdapter, type Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Job, JobOptions, Queue } from '#ports/queue.ts'
import { startAgenda, type Engine, type Worker } from './agenda/engine.ts'
import {
  checkName,
  firedId,
  idOf,
  prepareRows,
  rowsIn,
  scheduleName,
  type Rows,
} from './agenda/rows.ts'
import { nextTime } from './lib/cron.ts'
import { checkedJobOptions, closeMsMax, runLeased } from './lib/job-lease.ts'
import { connect, urlOptions, type Connection } from '../_shared/mongodb/database.ts'
import { watchInserts } from '../_shared/mongodb/watch.ts'

/**
 * A schedule that is due belongs to whoever claimed it for so long, in milliseconds: putting one
 * job in takes no longer.
 */
const fireMsMax = 30_000
const firedAtOnce = 8

type Timetable = { readonly key: string } & Parameters<Queue['schedule']>[1]
type World = {
  readonly rows: Rows
  readonly engine: Engine
  readonly clock: Clock
  readonly log: Log
}
type Taker = { readonly running: ReadonlyMap<string, AbortController>; stop(): Promise<void> }

/** A worker whose end can be waited for. */
function counted(
  { add, remove }: Engine,
  parts: Pick<Worker, 'name' | 'concurrency' | 'leaseMs' | 'prepare'>,
) {
  const ended = Promise.withResolvers<void>()
  const worker: Worker = {
    ...parts,
    taking: true,
    busy: 0,
    idle: () => void (worker.taking || ended.resolve()),
  }
  add(worker)
  return function stop(): Promise<void> {
    worker.taking = false
    if (worker.busy === 0) ended.resolve()
    return ended.promise.then(() => remove(worker))
  }
}

function createTaker(
  { rows, engine, clock, log }: World,
  name: string,
  handler: (job: Job) => Promise<void>,
  options: Required<JobOptions>,
): Taker {
  const running = new Map<string, AbortController>()
  const stop = counted(engine, {
    name,
    concurrency: options.concurrency,
    leaseMs: options.leaseMs,
    prepare(id) {
      const abort = new AbortController()
      running.set(id, abort)
      // A job whose lease was lost may run here a second time by now.
      const drop = () => void (running.get(id) === abort && running.delete(id))
      return {
        drop,
        async run(row, mark) {
          const lease = rows.leaseOf(row, mark)
          try {
            if (abort.signal.aborted)
              return await (abort.signal.reason === 'cancelled'
                ? lease.finish('cancelled')
                : lease.putBack('the worker closed'))
            // Its workers died with it time after time.
            if (row.attempt > options.attemptsMax)
              return await lease.finish('failed', row.failReason ?? 'the lease ran out')
            await runLeased(
              { clock, log, lease, handler, options, abort },
              { id, name, data: JSON.parse(row.data), attempt: row.attempt },
            )
          } finally {
            drop()
          }
        },
      }
    },
  })
  return { running, stop }
}

/**
 * The job is put in before the schedule moves on: after a crash between the two its id is taken
 * already.
 */
const createFiring = ({ rows, engine, clock, log }: World) =>
  counted(engine, {
    name: scheduleName,
    concurrency: firedAtOnce,
    leaseMs: fireMsMax,
    prepare: () => ({
      drop: () => {},
      async run(row, mark) {
        const { key, name, data, cron, timezone } = JSON.parse(row.data) as Timetable
        const due = row.nextRunAt!.getTime()
        await rows.add({ id: firedId(key, due), name, data, due: clock.now() })
        engine.wake(name)
        await rows.moveOn(row, mark, nextTime(cron, timezone, clock.now()))
        log('debug', 'queue.fired', { schedule: key, name })
      },
    }),
  })

export async function agendaQueue({
  connection,
  clock,
  log,
}: {
  connection: Connection
  clock: Clock
  log: Log
}): Promise<Queue> {
  const { db } = connection
  const rows = rowsIn(connection, clock)
  await prepareRows(db)
  const engine = await startAgenda({ db, rows, clock, log })
  const world = { rows, engine, clock, log }
  const stopFiring = createFiring(world)
  const takers = new Set<Taker>()
  const watching = new AbortController()
  watchInserts(rows.watchable, {
    clock,
    log,
    signal: watching.signal,
    lag: engine.wakeAll,
    take: ({ name, nextRunAt }) =>
      void (nextRunAt && nextRunAt.getTime() <= clock.now() && engine.wake(name)),
  })
  let closed: Promise<void> | undefined
  const open = () => {
    if (closed !== undefined) throw fault('UNAVAILABLE', { what: 'The queue', why: 'it is closed' })
  }
  async function close(): Promise<void> {
    watching.abort()
    for (const { running } of takers) for (const abort of running.values()) abort.abort('closing')
    const stopping = Promise.all([
      stopFiring(),
      ...[...takers].map(({ stop }) => stop()),
      engine.stop(),
    ])
    // A handler that does not heed its signal must not hold the server for ever; its lease runs
    // out.
    const waited = new AbortController()
    await Promise.race([stopping, clock.sleep(closeMsMax, waited.signal).catch(() => {})])
    waited.abort()
    engine.abandon()
    await connection.close()
  }

  return {
    define(name, handler, options = {}) {
      open()
      checkName(name)
      const taker = createTaker(world, name, handler, checkedJobOptions(options))
      takers.add(taker)
      return () => taker.stop().finally(() => takers.delete(taker))
    },
    async enqueue(name, data, { runAt, dedupeKey } = {}) {
      open()
      checkName(name)
      const id = await rows.add({
        name,
        data,
        due: runAt ?? clock.now(),
        ...(dedupeKey === undefined ? {} : { active: `${name} ${dedupeKey}` }),
      })
      engine.wake(name)
      return id
    },
    async schedule(key, { name, data, cron, timezone }) {
      open()
      checkName(name)
      const due = nextTime(cron, timezone, clock.now())
      const nextAt = await rows.schedule(key, {
        data: { key, name, data, cron, timezone },
        cron,
        timezone,
        due,
      })
      if (nextAt <= clock.now()) engine.wake(scheduleName)
      return { nextAt }
    },
    async unschedule(key) {
      open()
      return rows.unschedule(key)
    },
    async cancel(id) {
      open()
      const known = idOf(id)
      if (!known) return false
      if (await rows.cancel(known)) return true
      for (const { running } of takers) running.get(id)?.abort('cancelled')
      return false
    },
    async state(id) {
      open()
      const known = idOf(id)
      return known && rows.state(known)
    },
    async depth(names) {
      open()
      return Object.fromEntries(
        await Promise.all(names.map(async name => [name, await rows.depth(name)] as const)),
      )
    },
    async ping() {
      open()
      await connection.ping()
    },
    close: () => (closed ??= close()),
  }
}

/** What stands behind `agenda:` is a mongodb: URL as STORAGE_URL has it. */
function databaseOf({ href }: URL): URL {
  const inner = href.slice('agenda:'.length)
  if (!/^mongodb(?:\+srv)?:\/\//.test(inner) || !URL.canParse(inner))
    throw fault('INVALID_FIELD', {
      field: 'QUEUE_URL',
      why: 'is written as agenda:mongodb://host/database',
    })
  return new URL(inner)
}

export default defineAdapter<Queue>({
  port: 'queue',
  scheme: 'agenda',
  externalClock: true,
  options: urlOptions,
  open: async ({ url, clock, log }) => {
    const connection = await connect(databaseOf(url))
    try {
      return await agendaQueue({ connection, clock, log })
    } catch (error) {
      await connection.close()
      throw error
    }
  },
})
