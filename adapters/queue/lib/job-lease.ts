// Runs one try of a job under a lease: sends heartbeats, and records how the try ended. The adapter
// that stores the jobs says how that is written.
import { fault } from '#contracts/faults.ts'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Job, JobOptions, JobState } from '#ports/queue.ts'

export const jobDefaults = {
  concurrency: 4,
  leaseMs: 30_000,
  attemptsMax: 5,
  backoffMs: 1000,
} as const
/** Milliseconds for which ended jobs are kept, so that `state` can answer. */
export const keptMs = 7 * 86_400_000
/**
 * Milliseconds that a closing queue waits for handlers. A handler that ignores its signal loses its
 * lease.
 */
export const closeMsMax = 10_000
export const errorCharactersMax = 1000
const backoffMsMax = 3_600_000

/** The lease of one try. Each method writes only while this try holds the job. */
export type Lease = {
  /** Renews the lease; false when this try no longer holds the job. */
  heartbeat(): Promise<boolean>
  finish(state: JobState, error?: string): Promise<void>
  /**
   * Gives the job back for another try after `afterMs`. Without `afterMs` the next try is at once,
   * and this try does not count.
   */
  putBack(error: string, afterMs?: number): Promise<void>
}
export type Trying = {
  readonly clock: Clock
  readonly log: Log
  readonly lease: Lease
  readonly handler: (job: Job) => Promise<void>
  readonly options: Required<JobOptions>
  /** Aborted with 'cancelled' or 'closing' from outside. */
  readonly abort: AbortController
}

/** INVALID_FIELD names the option. */
export function checkedJobOptions(options: JobOptions): Required<JobOptions> {
  const wanted = { ...jobDefaults, ...options }
  for (const [field, value] of Object.entries(wanted))
    if (!Number.isFinite(value) || value < (field === 'backoffMs' ? 0 : 1))
      throw fault('INVALID_FIELD', { field, why: 'a number, at least 1' })
  return wanted
}

/**
 * Renews the lease until the job ends. Aborts the job when the lease is lost, or when no answer
 * comes in time.
 */
async function keepLease(
  { clock, log, lease, options: { leaseMs }, abort }: Trying,
  id: string,
  done: AbortSignal,
): Promise<void> {
  for (let until = clock.now() + leaseMs; clock.now() < until; ) {
    await clock.sleep(leaseMs / 3, done)
    const leaseUntil = clock.now() + leaseMs
    const late = new AbortController()
    const renewal = lease.heartbeat().then(kept => (kept ? 'kept' : 'lost'))
    const failed = renewal.catch((error: Error) =>
      log('warn', 'queue.beat_failed', { job: id, error: error.message }),
    )
    const answer = await Promise.race([
      failed,
      clock
        .sleep(Math.max(0, until - clock.now()), AbortSignal.any([late.signal, done]))
        .catch(() => {}),
    ])
    late.abort()
    if (answer === 'lost') break
    if (answer === 'kept') until = leaseUntil
  }
  if (!done.aborted) abort.abort(fault('CONFLICT', { why: 'the lease of this job is lost' }))
}

/** Rejects when the result could not be written. */
export async function runLeased(
  trying: Trying,
  { id, name, data, attempt }: Omit<Job, 'signal'>,
): Promise<void> {
  const {
    clock,
    lease,
    handler,
    options: { attemptsMax, backoffMs },
    abort,
  } = trying
  const done = new AbortController()
  // Ends with a lost lease or with `done`; neither is an error.
  void keepLease(trying, id, done.signal).catch(() => {})
  try {
    await handler({ id, name, data, attempt, signal: abort.signal })
    await lease.finish('done')
  } catch (error) {
    const why = (error instanceof Error ? error.message : String(error)).slice(
      0,
      errorCharactersMax,
    )
    const reason: unknown = abort.signal.aborted ? abort.signal.reason : undefined
    if (reason === 'cancelled') await lease.finish('cancelled', why)
    else if (reason === 'closing') await lease.putBack(why)
    else if (attempt < attemptsMax)
      await lease.putBack(
        why,
        Math.round(
          Math.min(backoffMsMax, backoffMs * 2 ** (attempt - 1)) * (0.5 + clock.random() / 2),
        ),
      )
    else await lease.finish('failed', why)
  } finally {
    done.abort()
  }
}
