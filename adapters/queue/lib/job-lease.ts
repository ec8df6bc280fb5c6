// One try of a job under a lease: beats while it runs, and writes down how it ended. Who keeps the
// jobs says how that is written.
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
/** Ended jobs are kept for questions about their state, in milliseconds. */
export const keptMs = 7 * 86_400_000
/** So long a closing queue waits for handlers; one that ignores its signal loses its lease. */
export const closeMsMax = 10_000
export const errorCharactersMax = 1000
const backoffMsMax = 3_600_000

/** Each writes only where this try still holds the job. */
export type Lease = {
  /** False when somebody else has the job, or nobody. */
  heartbeat(): Promise<boolean>
  finish(state: JobState, error?: string): Promise<void>
  /**
   * Waits for another try after so long; without `afterMs` at once, and this try does not count.
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
 * Prolongs the lease until the job ends; without a lease the job must stop, also when there is no
 * answer in time.
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

/** Rejects when how it ended could not be written. */
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
  // Ends by its own lost lease or by `done`; neither is an error.
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
