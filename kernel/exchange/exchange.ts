// The exchange of plugins. Boot, reload, unload and stop are one algorithm: from the living set to
// another, whole or not at all.
import type { Log } from '#ports/adapter.ts'
import { isFault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import type { HttpServer, Route } from '#ports/http.ts'
import type { Queue } from '#ports/queue.ts'
import type { StorageEngine } from '#ports/storage.ts'
import type { Engines } from '../engines.ts'
import type { Dispatcher } from '../routing/dispatch.ts'
import { createInstance, type Instance } from '../loading/instance.ts'
import { createJobs } from './jobs.ts'
import { checkDeclared } from '../loading/declared.ts'
import { checkItems } from '../loading/items.ts'
import { createSteps } from '../loading/steps.ts'
import { refuseStranding } from '../loading/stranded-records.ts'
import { createRetirement } from './retirement.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import { affected, dependencyOrderOf, type DependencyOrder } from './dependency-order.ts'
import type { Plugin } from '../plugin.ts'
import { readConfig, readRates, type Environment, type Settings } from '../settings/settings.ts'
import {
  emptyRoutingTable,
  methodOf,
  createRoutingTable,
  type RoutingTable,
} from '../routing/routing-table.ts'
import { defineCollection } from '../scoped-ports/define.ts'
import type { TokenResolver } from '../scoped-ports/token-resolver.ts'
import type { Compile } from '../validation/validate.ts'

type Parts = {
  readonly env: Environment
  readonly settings: Settings
  readonly engines: Engines
  readonly log: Log
  readonly strict: boolean
  readonly metrics: Metrics
  readonly tokens: TokenResolver
  readonly handle: Dispatcher['handle']
}

/**
 * Puts the culprit's name before the error of its code. The platform's faults name the culprit
 * already.
 */
const blame =
  ({ name, version }: Plugin, what: string) =>
  (error: unknown) =>
    Promise.reject(
      isFault(error)
        ? error
        : new Error(`${name} ${version} ${what}: ${(error as Error).message}`, { cause: error }),
    )

export function createExchange({
  env,
  settings,
  engines,
  log,
  strict,
  metrics,
  tokens,
  handle,
}: Parts) {
  const clock = engines.engine<Clock>('clock')
  const http = engines.engine<HttpServer>('http')
  const jobs = createJobs(engines.engine<Queue>('queue'), settings.ROLE, metrics.job)
  const steps = createSteps({ clock, msMax: settings.PLUGIN_STEP_MS })
  const retirement = createRetirement({ clock, jobs, log, drainMs: settings.DRAIN_MS })
  let table = emptyRoutingTable
  let generation = 0
  let changing: Promise<unknown> = Promise.resolve()
  /** Drains of replaced generations that still have calls. */
  const draining = new Set<Promise<unknown>>()

  const isServing = (plugin: Plugin) => table.instances.get(plugin.name)?.plugin === plugin
  const isInTable = (instance: Instance) => table.instances.get(instance.plugin.name) === instance
  /** Checks new plugins only; the serving ones were checked before. */
  const checkFresh = (plugins: readonly Plugin[], compile?: Compile) => {
    for (const plugin of plugins) if (!isServing(plugin)) checkDeclared(plugin, compile)
  }

  const build = async (
    plan: DependencyOrder,
    plugin: Plugin,
    fresh: ReadonlyMap<string, Instance>,
    previousDrained: Promise<void>,
  ): Promise<Instance> => {
    for (const collection of plugin.collections ?? []) {
      const define = () => defineCollection(engines.engine<StorageEngine>('storage'), collection)
      await steps.within(`defining the collection ${collection.name}`, define, {
        msMax: settings.PLUGIN_DEFINE_MS,
        setting: 'PLUGIN_DEFINE_MS',
      })
    }
    const serviceOf = (tokenId: string): unknown => {
      const { plugin: provider, service } = plan.providers.get(tokenId)!
      return (fresh.get(provider) ?? table.instances.get(provider)!).service(service)
    }
    return createInstance({
      plugin,
      generation: ++generation,
      config: readConfig(plugin, env),
      rates: readRates(plugin, env),
      log,
      clock,
      steps,
      given: tokens.resolverFor(plugin, previousDrained, serviceOf),
    })
  }

  /** Builds what changes into `fresh`, and answers the table that would serve it. */
  const prepare = async (
    plan: DependencyOrder,
    fresh: Map<string, Instance>,
    { previousDrained, compile }: { previousDrained: Promise<void>; compile: Compile },
  ): Promise<RoutingTable> => {
    const changed = plan.order.filter(plugin => !isServing(plugin)).map(({ name }) => name)
    const rebuilt = affected(plan, new Set(changed))
    for (const plugin of plan.order) {
      if (!rebuilt.has(plugin.name)) continue
      const built = build(plan, plugin, fresh, previousDrained)
      fresh.set(plugin.name, await built.catch(blame(plugin, 'cannot be built')))
    }
    const instances = new Map(
      plan.order.map(({ name }) => [name, fresh.get(name) ?? table.instances.get(name)!]),
    )
    const next = createRoutingTable(table, instances, { strict, compile })
    checkItems(next.points, next.instances, name => fresh.has(name))
    for (const { plugin, cradle } of fresh.values()) {
      if (!plugin.health) continue
      const asked = steps.within('its health', () => plugin.health!(cradle as never))
      await asked.catch(blame(plugin, 'is not healthy'))
    }
    await refuseStranding(table.instances.values(), plan.order, steps.within)
    return next
  }

  const rowsOf = ({ endpoints }: RoutingTable): Route[] =>
    [...endpoints]
      .filter(([, { operation }]) => settings.ROLE !== 'worker' || operation.everywhere)
      .map(([id, endpoint]) => ({
        method: methodOf(endpoint),
        path: endpoint.path,
        handle: request => handle(table.endpoints.get(id), request),
      }))
  /** Swaps the routing table: synchronous, and all or nothing. */
  const swap = (next: RoutingTable) => {
    const sameRows = [...table.endpoints.keys()].join() === [...next.endpoints.keys()].join()
    // Other parts may refuse first. Then the table stays as it was.
    try {
      for (const instance of next.instances.values()) jobs.take(instance)
      // Endpoints are looked up at each call, so the server needs to know changed rows only.
      if (!sameRows) http.routes(rowsOf(next))
    } catch (error) {
      for (const instance of next.instances.values())
        if (!isInTable(instance)) void jobs.drop(instance)
      if (!sameRows) http.routes(rowsOf(table))
      throw error
    }
    table = next
  }

  const transition = async (plugins: readonly Plugin[], compile: Compile) => {
    const drainedBefore = Promise.withResolvers<void>()
    checkFresh(plugins, compile)
    const plan = dependencyOrderOf(plugins, tokens.isPort)
    const fresh = new Map<string, Instance>()
    try {
      const next = await prepare(plan, fresh, {
        previousDrained: drainedBefore.promise,
        compile,
      })
      const old = [...table.instances.values()].filter(
        instance => next.instances.get(instance.plugin.name) !== instance,
      )
      swap(next)
      for (const name of fresh.keys()) metrics.loaded(name)
      const drained = retirement.retireAll(old).finally(() => draining.delete(drained))
      draining.add(drained)
      void drained.then(drainedBefore.resolve)
      return { drained }
    } catch (error) {
      for (const instance of [...fresh.values()].reverse())
        if (!isInTable(instance)) await retirement.undoNow(instance)
      throw error
    }
  }

  return {
    table: () => table,
    /** Bounds a step of loading in time. */
    within: steps.within,
    /**
     * Changes the living plugins to these; equal values stay untouched. A failure leaves the old
     * set serving and says why. One change runs at a time. Resolves at the swap, and `drained` when
     * the old generations are undone.
     */
    applyPlugins(
      plugins: readonly Plugin[],
      compile: Compile = 'now',
    ): Promise<{ readonly drained: Promise<unknown> }> {
      const turn = changing.then(() => transition(plugins, compile))
      changing = turn.catch(metrics.refused)
      return turn
    },
    /**
     * Refuses plugins that do not fit together or are not configured, without building anything.
     */
    check(plugins: readonly Plugin[]): void {
      checkFresh(plugins)
      for (const plugin of dependencyOrderOf(plugins, tokens.isPort).order)
        [readConfig, readRates].forEach(read => read(plugin, env))
    },
    waitingFor: retirement.waitingFor,
    waitFor: retirement.waitFor,
    /** A change under way ends here. Plugins that wait to be loaded are not loaded. */
    refuseChanges: (undoneUntil: number) => steps.stop(undoneUntil),
    /** Waits for the changes, then undoes everything in reverse. */
    async retireAll(until: number, undoneUntil: number): Promise<void> {
      await retirement.waitFor('a change of plugins', () => changing, undoneUntil)
      await retirement.waitFor('a change of plugins', () => Promise.all(draining), undoneUntil)
      await retirement.retireAll([...table.instances.values()], until)
      table = emptyRoutingTable
    },
  }
}
