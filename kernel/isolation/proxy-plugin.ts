// The proxy plugin: it has the manifest's data, and its handlers call a plugin in a thread. A
// thread protects other plugins from mistakes; it is no security boundary.
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Source } from '../module-loader.ts'
import type { RequestValues } from '../loading/instance.ts'
import type { ResourceLimits } from '../kernel-ports.ts'
import type { JobCall, PluginContext, Plugin } from '../plugin.ts'
import { reached, type Reach } from './remote-proxy.ts'
import { resourceLimitsDefault, type Item, type Manifest, type Start } from './manifest.ts'
import { superviseWorker, run, type WorkerSupervisor } from './supervisor.ts'

export type Isolation = {
  /** Describes the plugin in a thread that ends at once. Rejects with a sentence. */
  describe(source: Source): Promise<Manifest>
  /**
   * Makes the proxy of a described plugin, which a thread will serve. Throws a sentence when that
   * is not possible.
   */
  proxyOf(source: Source, bounds: ResourceLimits, manifest: Manifest): Plugin
}
type Deps = PluginContext<object> & { readonly thread: WorkerSupervisor } & Readonly<
    Record<string, unknown>
  >
type Said = { readonly level: Parameters<Log>[0]; readonly event: string; readonly fields: object }

/** A contributed item: its fields, and methods that call the thread. */
const itemOver = (thread: WorkerSupervisor, at: number, { fields, methods }: Item) => ({
  ...fields,
  ...Object.fromEntries(
    methods.map(method => [
      method,
      (...args: unknown[]) => thread.call('item', { at, method, args }),
    ]),
  ),
})

export function createIsolation({
  clock,
  clockUrl,
  folders,
  stepMs,
}: {
  clock: Clock
  clockUrl: string
  folders: readonly string[]
  stepMs: number
}): Isolation {
  const startOf = ({ entry }: Source): Start => ({
    entry,
    stepMs,
    clock: { url: clockUrl, folders },
  })
  const describe = async (source: Source): Promise<Manifest> => {
    const { hello, end } = await run(
      { start: startOf(source), bounds: resourceLimitsDefault, clock },
      () => undefined,
    )
    await end('it was described')
    return hello.manifest
  }
  const open = (
    source: Source,
    bounds: ResourceLimits,
    manifest: Manifest,
    deps: Deps,
    generation: number,
  ): WorkerSupervisor => {
    const names = new Map(Object.entries(manifest.uses ?? {}).map(([name, { id }]) => [id, name]))
    const { config, rates, log } = deps
    const answers: Readonly<Record<string, (asked: never) => unknown>> = {
      reach: ({ token, steps }: Reach) => reached(deps[names.get(token)!], steps),
      log: ({ level, event, fields }: Said) => log(level, event, fields as Record<string, unknown>),
    }
    const thread = superviseWorker({
      start: { ...startOf(source), serve: { generation, config, rates } },
      bounds,
      clock,
      manifest,
      log,
      answer: (target, value) => answers[target]?.(value as never),
    })
    deps.defer(() => thread.close())
    return thread
  }

  return {
    describe,
    proxyOf(source, bounds, manifest) {
      const { unfit, jobs, commands, contributes, contract, ...data } = manifest
      if (unfit.length > 0)
        throw new Error(
          `${manifest.name} ${manifest.version} cannot run in a thread: ${unfit.join('; ')}.`,
        )
      let generation = 0
      const route =
        (key: string) =>
        ({
          thread,
          caller,
          params,
          query,
          headers,
          body,
          after,
          address,
          signal,
        }: Deps & RequestValues) =>
          thread.call('route', {
            key,
            values: { caller, params, query, headers, body, after, address, signal },
          })
      return {
        ...data,
        ...(contract ? { contract } : {}),
        services: { thread: (deps: Deps) => open(source, bounds, manifest, deps, ++generation) },
        routes: Object.fromEntries(Object.keys(contract ?? {}).map(key => [key, route(key)])),
        jobs: Object.fromEntries(
          Object.entries(jobs).map(([name, options]) => [
            name,
            {
              ...(options ? { options } : {}),
              run: async ({ thread, data: given, attempt, signal }: Deps & JobCall) =>
                void (await thread.call('job', { name, values: { data: given, attempt, signal } })),
            },
          ]),
        ),
        commands: Object.fromEntries(
          Object.entries(commands).map(([name, declared]) => [
            name,
            {
              ...declared,
              run: ({ thread }: Deps, options: never) => thread.call('command', { name, options }),
            },
          ]),
        ),
        contributes: contributes.map(({ point }, at) => ({
          point,
          make: async ({ thread }: Deps) => itemOver(thread, at, (await thread.ready).items[at]!),
        })),
        health: async ({ thread }: Deps) => void (await thread.call('health')),
        start: async ({ thread }: Deps) => void (await thread.ready),
      }
    },
  }
}
