// Answers what plugins ask about the kernel.
import type { Registry } from 'prom-client'
import type { TSchema } from 'typebox'
import type { Clock } from '#ports/clock.ts'
import type { Lifecycle } from '#ports/token.ts'
import type { Engines } from './engines.ts'
import { atMost } from './deadline.ts'
import type { Check, KernelInfo, Role } from './kernel-ports.ts'
import type { OpenStreams } from './routing/open-streams.ts'
import { kernelVersion } from './exchange/dependency-order.ts'
import type { RoutingTable } from './routing/routing-table.ts'

/** Milliseconds after which a part that does not answer counts as unhealthy. */
const healthMsMax = 2000

type Parts = {
  readonly streams: OpenStreams
  readonly role: Role
  readonly clock: Clock
  readonly engines: Engines
  readonly metrics: Registry
  readonly table: () => RoutingTable
  readonly serving: () => boolean
}

export function createKernelInfo({
  streams,
  role,
  clock,
  engines,
  metrics,
  table,
  serving,
}: Parts): KernelInfo {
  const late = () => {
    throw new Error(`no answer within ${healthMsMax} ms`)
  }
  const asked = async (name: string, probe: () => Promise<unknown>): Promise<Check> =>
    atMost(clock, healthMsMax, probe(), late).then(
      () => ({ name, ok: true }),
      (error: Error) => ({ name, ok: false, detail: error.message }),
    )
  return {
    version: kernelVersion,
    role,
    processId: clock.id(),
    metrics,
    serving,
    previousDrained: () => Promise.resolve(),
    recheck: userId => streams.recheck(userId),
    async exposition() {
      const parts = await Promise.all(
        [metrics, ...[...table().instances.values()].map(instance => instance.metrics)].map(
          registry => registry.metrics(),
        ),
      )
      return {
        text: parts.filter(part => part.trim() !== '').join('\n'),
        mime: metrics.contentType,
      }
    },
    operations: () =>
      [...table().endpoints.values()].map(({ key, path, operation, instance }) => ({
        key,
        path,
        operation,
        plugin: instance.plugin.name,
      })),
    events: () =>
      Object.assign(
        {},
        ...[...table().instances.values()].map(({ plugin }) => plugin.emits ?? {}),
      ) as Record<string, TSchema>,
    plugins: () =>
      [...table().instances.values()].map(({ plugin, generation }) => ({
        name: plugin.name,
        version: plugin.version,
        generation,
        emits: Object.keys(plugin.emits ?? {}),
      })),
    health: () =>
      Promise.all([
        ...engines
          .entries()
          .filter(([, part]) => part.ping)
          .map(([name, part]) => asked(`port:${name}`, () => (part as Lifecycle).ping())),
        ...[...table().instances.values()]
          .filter(({ plugin }) => plugin.health)
          .map(({ plugin, cradle }) =>
            asked(`plugin:${plugin.name}`, async () => plugin.health!(cradle as never)),
          ),
      ]),
  }
}
