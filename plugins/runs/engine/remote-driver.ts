// Stands where the driver does in a process that drives nothing: it calls on a worker instead. What
// it says are hints; a worker's sweep finds every run anyway.
import type { Log } from '#ports/adapter.ts'
import type { Queue } from '#ports/queue.ts'
import type { Run } from '../collections.ts'
import type { Driver } from './driver.ts'

/** A job with whose run it is; the worker that takes it looks whether there is anything to do. */
export const driveJob = 'runs.drive'
/** Told to all processes: `{ runId }`. */
export const cancelledTopic = 'runs.cancelled'

type Called = { readonly id: string; readonly orgId: string }

export function createRemoteDriver({ queue, log }: { queue: Queue; log: Log }): Driver {
  // One that waits to be taken is enough: whoever takes it sees the run as it is then.
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
