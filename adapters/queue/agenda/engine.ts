// Agenda polls and claims; we add fencing. Agenda's own writes check no lock and could overwrite a
// successor's work, so they are suppressed. Each claim stores a mark, and later writes require that
// mark.
import { EventEmitter } from 'node:events'
import type { Db } from 'mongodb'
import type {
  AgendaBackend,
  JobParameters,
  JobRepository,
  NotificationChannel,
  NotificationHandler,
} from 'agenda'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import { orFault } from '../../_shared/mongodb/database.ts'
import { collectionName, type Row, type Rows } from './rows.ts'

/** How often Agenda looks for what is due, in milliseconds; insertions are told at once. */
const pollMs = 1000
/** Agenda keeps a timer of half this time for each job that ran, in milliseconds. */
const agendaLockMs = 1000
/** Counts what runs, by worker: one that drains must not hold back the one that follows it. */
const agendaConcurrency = 1_000_000
const closing = 'the worker closed'
/** A time that keeps a claim due and never too old; else Agenda would drop the claim for good. */
const always = new Date(0)
const never = new Date(8.64e15)

/**
 * `run` ends the claim in any case, and rejects with what could not be written; `drop` is called
 * where it will not be run.
 */
export type Prepared = { run(row: Row, mark: string): Promise<void>; drop(): void }
/**
 * `prepare` is called before anybody can see that the job runs: from then on it can be cancelled.
 */
export type Worker = {
  readonly name: string
  readonly concurrency: number
  readonly leaseMs: number
  taking: boolean
  busy: number
  prepare(id: string): Prepared
  idle(): void
}
export type Engine = {
  add(worker: Worker): void
  remove(worker: Worker): void
  wake(name: string): void
  wakeAll(): void
  stop(): Promise<void>
  /** Tells Agenda that running jobs are over; else its timers would keep the process alive. */
  abandon(): void
}
type Claim = {
  readonly worker: Worker
  readonly mark: string
  readonly row: Row
  readonly prepared: Prepared
}

/** Calls to look again; of many for one name while one is under way, one follows. */
function createChannel(log: Log) {
  const emitter = new EventEmitter()
  const looking = new Map<string, boolean>()
  let handler: NotificationHandler | undefined
  const look = async (jobName: string) => {
    do {
      looking.set(jobName, false)
      await handler?.({
        jobId: '' as never,
        jobName,
        nextRunAt: null,
        priority: 0,
        timestamp: always,
      })
    } while (looking.get(jobName))
    looking.delete(jobName)
  }
  const channel: NotificationChannel = Object.assign(emitter, {
    state: 'connected' as const,
    connect: async () => {},
    disconnect: async () => {},
    publish: async () => {},
    subscribe(wanted: NotificationHandler) {
      handler = wanted
      return () => {
        handler = undefined
      }
    },
  })
  /** Who is not found by this is found at the next poll. */
  const failed = (name: string) => (error: unknown) => {
    looking.delete(name)
    log('warn', 'queue.poll_failed', { name, error })
  }
  return {
    channel,
    wake(name: string): void {
      if (looking.has(name)) looking.set(name, true)
      else void look(name).catch(failed(name))
    },
  }
}

export async function startAgenda({
  db,
  rows,
  clock,
  log,
}: {
  db: Db
  rows: Rows
  clock: Clock
  log: Log
}): Promise<Engine> {
  const [{ Agenda }, { MongoBackend }] = await Promise.all([
    import('agenda'),
    import('@agendajs/mongo-backend'),
  ])
  const { repository } = new MongoBackend({ mongo: db as never, collection: collectionName })
  await orFault(repository.connect())
  const workers: Worker[] = []
  const claims = new Map<string, Claim>()
  const { promise: abandoned, resolve: abandon } = Promise.withResolvers<void>()
  let isStopped = false

  const claim = async (name: string): Promise<JobParameters | undefined> => {
    const worker = isStopped
      ? undefined
      : workers.findLast(one => one.name === name && one.taking && one.busy < one.concurrency)
    if (!worker) return undefined
    worker.busy++
    let held: Claim | undefined
    try {
      for (;;) {
        const mark = clock.id()
        const now = clock.now()
        const job = await repository.getNextJobToRun(
          name,
          new Date(now),
          new Date(now - worker.leaseMs),
          new Date(now),
          { lastModifiedBy: mark },
        )
        if (!job) return undefined
        // Begun here and not where it is run: Agenda runs what it claimed together, and a call to
        // the server between would part it.
        const id = String(job._id)
        const prepared = worker.prepare(id)
        const row = await rows.begin(id, mark).catch((error: unknown) => {
          prepared.drop()
          throw error
        })
        // The worker may have been told to stop while the server was asked.
        const isLate = isStopped || !worker.taking
        if (!row || isLate) prepared.drop()
        if (!row) continue
        if (isLate) {
          await rows.leaseOf(row, mark).putBack(closing)
          return undefined
        }
        claims.set(id, (held = { worker, mark, row, prepared }))
        return { ...job, nextRunAt: always, lockedAt: never }
      }
    } finally {
      if (!held) leave(worker)
    }
  }
  const leave = (worker: Worker) => {
    worker.busy--
    if (worker.busy === 0) worker.idle()
  }
  const giveBack = async (ids: readonly unknown[]) => {
    for (const id of ids.map(String)) {
      const held = claims.get(id)
      if (!held) continue
      claims.delete(id)
      held.prepared.drop()
      await rows
        .leaseOf(held.row, held.mark)
        .putBack(closing)
        .catch((error: Error) =>
          log('warn', 'queue.release_failed', { job: id, error: error.message }),
        )
      leave(held.worker)
    }
  }
  const run = async ({ attrs }: { attrs: JobParameters }): Promise<void> => {
    const id = String(attrs._id)
    const held = claims.get(id)
    if (!held) return
    claims.delete(id)
    const { worker, mark, row, prepared } = held
    try {
      await Promise.race([prepared.run(row, mark), abandoned])
    } catch (error) {
      log('warn', 'queue.job_unsettled', {
        job: id,
        name: worker.name,
        error: (error as Error).message,
      })
    } finally {
      leave(worker)
      wake(worker.name)
    }
  }

  const guarded: JobRepository = new Proxy(repository, {
    get(target, name) {
      if (name === 'getNextJobToRun') return claim
      if (name === 'saveJobState') return async () => {}
      if (name === 'unlockJob') return (job: JobParameters) => giveBack([job._id])
      if (name === 'unlockJobs') return giveBack
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
  // Connected already: Agenda would not hear of a failure.
  const backend: AgendaBackend = {
    name: 'MongoDB',
    repository: guarded,
    ownsConnection: false,
    connect: async () => {},
    disconnect: async () => {},
  }
  const { channel, wake } = createChannel(log)
  const agenda = new Agenda({
    backend,
    notificationChannel: channel,
    processEvery: pollMs,
    defaultLockLifetime: agendaLockMs,
    maxConcurrency: agendaConcurrency,
    defaultConcurrency: agendaConcurrency,
  })
  agenda.on('error', (error: Error) => log('warn', 'queue.poll_failed', { error: error.message }))
  await agenda.start()

  return {
    wake,
    abandon,
    wakeAll: () => [...new Set(workers.map(({ name }) => name))].forEach(wake),
    add(worker) {
      workers.push(worker)
      // One definition for all workers of a name; without a worker nothing is claimed for it.
      agenda.define(worker.name, job => run(job))
      wake(worker.name)
    },
    remove: worker => void workers.splice(workers.indexOf(worker), 1),
    async stop() {
      isStopped = true
      await agenda.stop(false)
      await giveBack([...claims.keys()])
    },
  }
}
