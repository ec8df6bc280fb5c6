// Jobs: work for later or for another process, done at least once. A job only wakes work up. The
// work's own lease decides who does it.
import { port, type Json, type Lifecycle } from './token.ts'

/** One try of a job. */
export type Job = {
  readonly id: string
  readonly name: string
  /** The data that was enqueued. */
  readonly data: Json
  /** 1 for the first try. */
  readonly attempt: number
  /** Aborts when the lease is lost or the worker closes. */
  readonly signal: AbortSignal
}
/** How jobs of one name are run. */
export type JobOptions = {
  /** Jobs of this name at a time in this process; default 4. */
  readonly concurrency?: number
  /**
   * Milliseconds after the last heartbeat until another worker may take the job; default 30000. The
   * adapter sends heartbeats by itself.
   */
  readonly leaseMs?: number
  /** Tries in all; default 5. After the last failed try the job is kept as `failed`. */
  readonly attemptsMax?: number
  /**
   * The first pause between two tries, in milliseconds; default 1000. Each further pause is twice
   * as long, with jitter, up to an hour.
   */
  readonly backoffMs?: number
}
/** `failed`: its last try failed. */
export type JobState = 'waiting' | 'running' | 'done' | 'failed' | 'cancelled'

/**
 * How many jobs of one name there are, in all processes. `waiting`: due, and no worker has taken
 * them. `running`: a worker has taken them. Jobs for a later time are in neither count.
 */
export type Depth = { readonly waiting: number; readonly running: number }

/** Enqueues jobs and runs them. The kernel calls `define` for a plugin's `jobs`. */
export type Queue = Lifecycle & {
  /**
   * Starts to take jobs of this name. The answered function stops it, and resolves when the jobs
   * under way have ended.
   */
  define(
    name: string,
    handler: (job: Job) => Promise<void>,
    options?: JobOptions,
  ): () => Promise<void>
  /**
   * Enqueues a job and answers its id. While a job with the same name and `dedupeKey` waits or
   * runs, no second one is added, and the first id is answered. `runAt`: milliseconds since the
   * epoch.
   */
  enqueue(
    name: string,
    data: Json,
    options?: { readonly runAt?: number; readonly dedupeKey?: string },
  ): Promise<string>
  /**
   * Enqueues a job again and again, by a five-field cron expression in an IANA time zone. A
   * schedule with the same key is replaced. Times that were missed fire once. INVALID_FIELD names
   * `cron` or `timezone`.
   */
  schedule(
    key: string,
    schedule: {
      readonly name: string
      readonly data: Json
      readonly cron: string
      readonly timezone: string
    },
  ): Promise<{ readonly nextAt: number }>
  /** Removes a schedule; false when there was no such schedule. */
  unschedule(key: string): Promise<boolean>
  /**
   * True when the job had not started. The signal of a running job aborts if the job runs in this
   * process.
   */
  cancel(id: string): Promise<boolean>
  /** The job's state; undefined for an unknown job, and for a job that ended long ago. */
  state(id: string): Promise<JobState | undefined>
  /**
   * Counts jobs by name. The counts come from indexes and not from one moment: they inform
   * operators, and no code may decide by them.
   */
  depth(names: readonly string[]): Promise<Readonly<Record<string, Depth>>>
}

/**
 * Puts jobs in and schedules them; what they do stands in the `jobs` of a plugin, which may put in
 * no others. Keys of schedules are its own.
 *  @example plugins/files/plugin.ts#jobs
 *  @example plugins/files/plugin.ts#start
 */
export const JobQueue = port<Queue>('queue')
