// Registers the jobs of living instances at the queue.
import type { Queue } from '#ports/queue.ts'
import type { Role } from '../kernel-ports.ts'
import type { Instance } from '../loading/instance.ts'

/** Defines an instance's jobs when it is swapped in, and gives them back when it goes. */
export function createJobs(
  queue: Queue,
  role: Role,
  counted: (name: string, act: () => Promise<void>) => Promise<void>,
) {
  const stops = new Map<Instance, (() => Promise<void>)[]>()
  return {
    take(instance: Instance): void {
      if (role === 'api' || stops.has(instance)) return
      stops.set(
        instance,
        Object.entries(instance.plugin.jobs ?? {}).map(([name, { run, options }]) =>
          queue.define(
            name,
            ({ data, attempt, signal }) =>
              counted(name, () => instance.within({ data, attempt, signal }, run)),
            options,
          ),
        ),
      )
    },
    async drop(instance: Instance): Promise<void> {
      const undone = (stops.get(instance) ?? []).map(stop => stop())
      stops.delete(instance)
      await Promise.all(undone)
    },
  }
}
export type Jobs = ReturnType<typeof createJobs>
