// The driver of a process that drives no runs: it calls a worker through the queue. Its calls are
// hints; a worker's sweep finds every run anyway.
import type { Log } from '#ports/adapter.ts'
import type { Queue } from '#ports/queue.ts'
import type { Run } from '../collections.ts'
import type { Driver } from './driver.ts'

/**
 * The job that names a run and its organisation. The worker that takes it checks whether there is
 * anything to do.
 */
export const driveJob = 'runs.drive'
/** A hint to all processes that a run was cancelled: `{ runId }`. */
export const cancelledTopic = 'runs.cancelled'

type Called = { readonly id: string; readonly orgId: string }

export function createRemoteDriver({ queue, log }: { queue: Queue; log: Log }): Driver {
  // One waiting job for a run is enough: the worker that takes it reads the run as it is then.
  const call = ({ id, orgId }: Called): void =>
    void queue
      .enqueue(driveJob, { id, orgId }, { dedupeKey: id })
      .catch((error: unknown) => log('warn', 'run.call', { run: id, organisation: orgId, error }))
  return {
    async claim(run: Run) {
      call(run)
      return false
    },
    async startNext({ orgId }, id) {
      call({ id, orgId })
    },
    begin: call,
    isActive: () => false,
    stop: () => undefined,
    heartbeat: async () => undefined,
    close: async () => undefined,
  }
}
