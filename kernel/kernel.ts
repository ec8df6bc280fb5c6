// Loads plugins, swaps them and stops them. Boot, reload, unload and stop are one algorithm: from the living set to another.
import type { Log } from '#ports/adapter.ts'
import { SystemClock, type Clock } from '#ports/clock.ts'
import type { HttpServer } from '#ports/http.ts'
import type { RateLimiter } from '#ports/limits.ts'
import type { Queue } from '#ports/queue.ts'
import type { StorageEngine } from '#ports/storage.ts'
import type { Token } from '#ports/token.ts'
import type { RunnableCommand } from './admin.ts'
import type { Engines } from './adapters.ts'
import { createDispatcher } from './dispatch.ts'
import { Host } from './host.ts'
import { createInstance, type Instance } from './instance.ts'
import { introspect } from './introspect.ts'
import { createMetrics } from './metrics.ts'
import { affected, planOf, type Plan } from './plan.ts'
import { Authenticators, type Authenticator, type Plugin } from './plugin.ts'
import { httpSettings, readConfig, readRates, type Environment, type Settings } from './settings.ts'
import { emptyTable, methodOf, tabulate, type Table } from './table.ts'
import { faceOf } from './tenancy.ts'

export type KernelParts = { readonly env: Environment; readonly settings: Settings; readonly engines: Engines; readonly log: Log; readonly strict?: boolean }

export function createKernel({ env, settings, engines, log, strict = false }: KernelParts) {
  const clock = engines.engine<Clock>('clock'), http = engines.engine<HttpServer>('http')
  const metrics = createMetrics(), jobs = createJobs(engines.engine<Queue>('queue'))
  let table = emptyTable, generation = 0, serving = false, changing: Promise<unknown> = Promise.resolve()

  const host = introspect({ clock, engines, metrics: metrics.registry, table: () => table, serving: () => serving })
  const dispatcher = createDispatcher({
    authenticators: () => (table.points.get(Authenticators.id) ?? []) as readonly Authenticator[],
    limiter: engines.engine<RateLimiter>('limits'), engines, log, strict,
  })
  const isPort = (token: Token) => token.id === Host.id || engines.entries().some(([name]) => token.id === `port:${name}`)

  const build = async (plan: Plan, plugin: Plugin, fresh: ReadonlyMap<string, Instance>): Promise<Instance> => {
    for (const collection of plugin.collections ?? []) await engines.engine<StorageEngine>('storage').define(collection)
    const given = (token: Token): unknown => {
      if (token.id === Host.id) return host
      if (token.id === SystemClock.id) return clock
      if (token.kind === 'point') return () => table.points.get(token.id) ?? []
      if (token.kind === 'port') return faceOf(token.id, engines.engine(token.id.slice('port:'.length)), plugin)
      const { plugin: provider, service } = plan.providers.get(token.id)!
      return (fresh.get(provider) ?? table.instances.get(provider)!).service(service)
    }
    return createInstance({ plugin, generation: ++generation, config: readConfig(plugin, env), rates: readRates(plugin, env), log, clock, given })
  }

  /** The only visible moment: synchronous. */
  const swap = (next: Table) => {
    const sameRows = [...table.endpoints.keys()].join() === [...next.endpoints.keys()].join()
    table = next
    metrics.swapped()
    // Routes look their endpoint up at each call, so only another set of rows is the server's business.
    if (!sameRows) http.routes([...next.endpoints].map(([id, endpoint]) => ({ method: methodOf(endpoint), path: endpoint.path, handle: request => dispatcher.handle(table.endpoints.get(id), request) })))
    for (const instance of next.instances.values()) jobs.take(instance)
  }
  const retire = async (instance: Instance) => {
    const stopped = jobs.drop(instance)
    await instance.retire(settings.DRAIN_MS).catch((error: unknown) => log('error', 'plugin.undo', { plugin: instance.plugin.name, error }))
    await stopped
  }

  const transition = async (plugins: readonly Plugin[]) => {
    const plan = planOf(plugins, isPort), fresh = new Map<string, Instance>()
    const changed = new Set(plan.order.filter(plugin => table.instances.get(plugin.name)?.plugin !== plugin).map(({ name }) => name))
    const rebuilt = affected(plan, changed)
    try {
      for (const plugin of plan.order) if (rebuilt.has(plugin.name)) fresh.set(plugin.name, await build(plan, plugin, fresh))
      const next = tabulate(table, new Map(plan.order.map(({ name }) => [name, fresh.get(name) ?? table.instances.get(name)!])), strict)
      for (const { plugin, cradle } of fresh.values()) await plugin.health?.(cradle as never)
      const old = [...table.instances.values()].filter(instance => next.instances.get(instance.plugin.name) !== instance)
      swap(next)
      await Promise.all(old.reverse().map(retire))
    } catch (error) {
      for (const instance of [...fresh.values()].reverse()) if (table.instances.get(instance.plugin.name) !== instance) await instance.retire(0)
      throw error
    }
  }

  return {
    host,
    /** From the living plugins to these; what is the same value stays untouched. A failure leaves the old set serving and says why. One change at a time. */
    become(plugins: readonly Plugin[]): Promise<void> {
      const turn = changing.then(() => transition(plugins))
      changing = turn.catch(() => undefined)
      return turn
    },
    async listen(): Promise<{ port: number }> {
      metrics.gaugeStreams(() => http.openStreams())
      const listening = await http.listen(httpSettings(settings), { report: metrics.report, refuse: dispatcher.refuse })
      serving = true
      return listening
    },
    /** What the plugins offer on the command line, to be run inside this process. */
    commands: (): Map<string, RunnableCommand> => new Map([...table.instances.values()].flatMap(instance => Object.entries(instance.plugin.commands ?? {}).map(([name, { summary, options, run }]) =>
      [name, { summary, options, run: (given: unknown) => instance.within({}, deps => run(deps, given as never)) }] as const))),
    /** Ready turns false at once; streams end (clients resume elsewhere), calls and jobs drain, then everything is undone in reverse. */
    async stop(): Promise<void> {
      serving = false
      await http.close()
      await changing
      for (const instance of [...table.instances.values()].reverse()) await retire(instance)
      table = emptyTable
      await engines.close()
    },
  }
}
export type Kernel = ReturnType<typeof createKernel>

/** The jobs of living instances: defined when one is swapped in, given back when it goes. */
function createJobs(queue: Queue) {
  const stops = new Map<Instance, (() => Promise<void>)[]>()
  return {
    take(instance: Instance): void {
      if (stops.has(instance)) return
      stops.set(instance, Object.entries(instance.plugin.jobs ?? {}).map(([name, { run, options }]) =>
        queue.define(name, ({ data, attempt, signal }) => instance.within({ data, attempt, signal }, run), options)))
    },
    async drop(instance: Instance): Promise<void> {
      const undone = (stops.get(instance) ?? []).map(stop => stop())
      stops.delete(instance)
      await Promise.all(undone)
    },
  }
}
