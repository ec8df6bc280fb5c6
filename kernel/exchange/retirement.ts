// Undoes instances that serve no longer, each within a time.
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import { atMost } from '../deadline.ts'
import type { Instance } from '../loading/instance.ts'
import type { Jobs } from './jobs.ts'

type Parts = {
  readonly clock: Clock
  readonly jobs: Jobs
  readonly log: Log
  readonly drainMs: number
}
export function createRetirement({ clock, jobs, log, drainMs }: Parts) {
  let waitingFor = ''

  const waitUntil = (work: Promise<unknown>, until: number): Promise<unknown> =>
    atMost(clock, Math.max(0, until - clock.monotonic()), work, () => undefined)
  const undo = (instance: Instance, ms: number) =>
    instance.retire(ms).catch((error: unknown) =>
      log('error', 'plugin.undo', {
        plugin: instance.plugin.name,
        generation: instance.generation,
        error,
      }),
    )
  const retire = async (instance: Instance, until: number) => {
    waitingFor = `plugin:${instance.plugin.name}`
    const stopped = jobs.drop(instance)
    await undo(instance, Math.max(0, until - clock.monotonic()))
    // The queue gives up a job that does not end.
    await waitUntil(stopped, until)
  }
  return {
    /** What a stop is waiting for. */
    waitingFor: () => waitingFor,
    /** Waits for a part of the stop, no longer than until then. */
    waitFor(what: string, work: () => Promise<unknown>, until: number): Promise<unknown> {
      waitingFor = what
      return waitUntil(work(), until)
    },
    /** Of an instance that never served. */
    undoNow: (instance: Instance) => undo(instance, 0),
    /** Users of a service go before its provider. All of them share one time limit. */
    async retireAll(old: readonly Instance[], until = clock.monotonic() + drainMs): Promise<void> {
      for (const instance of old.toReversed()) await retire(instance, until)
    },
  }
}
