// Work that is to be done later or elsewhere, at least once. It only wakes work: who may do it is
// decided by the work's own lease.
import { port, type Json, type Lifecycle } from './token.ts'

/** One try of a job. */
export type Job = {
  readonly id: string
  readonly name: string
  /** As it was put in. */
  readonly data: Json
  /** 1 for the first try. */
  readonly attempt: number
  /** Aborts when the lease is lost or the worker closes. */
  readonly signal: AbortSignal
}
/** How jobs of one name are worked on. */
export type JobOptions = {
  /** Jobs of this name at a time in this process; default 4. */
  readonly concurrency?: number
  /**
   * Another worker may take the job this many milliseconds after the last heartbeat; the adapter
   * beats by itself; default 30000.
   */
  readonly leaseMs?: number
  /** Tries in all; default 5. After the last one the job is kept as `failed`. */
  readonly attemptsMax?: number
  /**
   * The first pause before another try; doubles each time, with jitter, up to an hour; in
   * milliseconds, default 1000.
   */
  readonly backoffMs?: number
}
/** `failed`: its last try failed. */
export type JobState = 'waiting' | 'running' | 'done' | 'failed' | 'cancelled'

/**
 * How many jobs of a name there are, by whichever process. `waiting`: their time has come and
 * nobody has taken them; `running`: somebody has. Those whose time is yet to come are in neither.
 */
export type Depth = { readonly waiting: number; readonly running: number }

/** Puts work in; a plugin's own `jobs` are defined for it. */
export type Queue = Lifecycle & {
  /**
   * Starts taking jobs of this name. The returned function stops taking them and resolves when
   * those under way have ended.
   */
  define(
    name: string,
    handler: (job: Job) => Promise<void>,
    options?: JobOptions,
  ): () => Promise<void>
  /**
   * The job's id. A second job with the same name and `dedupeKey`, while the first waits or runs,
   * is not added: the first's id is answered. `runAt`: milliseconds since the epoch.
   */
  enqueue(
    name: string,
    data: Json,
    options?: { readonly runAt?: number; readonly dedupeKey?: string },
  ): Promise<string>
  /**
   * Repeats by a five-field cron expression in an IANA time zone. The same key again replaces;
   * missed times fire once. INVALID_FIELD names `cron` or `timezone`.
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
  /** False when there was no such schedule. */
  unschedule(key: string): Promise<boolean>
  /** True when it had not started; a running job's signal aborts where it runs in this process. */
  cancel(id: string): Promise<boolean>
  /** Undefined for an unknown job, and for one that ended long ago. */
  state(id: string): Promise<JobState | undefined>
  /**
   * Of each of these names, counted by indexes and not at one moment: a figure for operators,
   * nothing to decide by.
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
