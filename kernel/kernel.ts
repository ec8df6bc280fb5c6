// Loads, swaps and stops plugins. Boot, reload, unload and stop are one algorithm: from the living
// set of plugins to another.
import type { Registry } from 'prom-client'
import type { Log } from '#ports/adapter.ts'
import { isFault } from '#contracts/faults.ts'
import { SystemClock, type Clock } from '#ports/clock.ts'
import type { HttpReport, HttpServer, Route } from '#ports/http.ts'
import type { RateLimiter } from '#ports/limits.ts'
import type { Queue } from '#ports/queue.ts'
import type { StorageEngine } from '#ports/storage.ts'
import type { Token } from '#ports/token.ts'
import type { Tracer } from '#ports/traces.ts'
import type { Engines } from './adapters.ts'
import { createDispatcher } from './dispatch.ts'
import { Host, Broadcast, Plugins, type Broadcasting } from './kernel-ports.ts'
import { createInstance, type Instance } from './instance.ts'
import { createKernelInfo } from './kernel-info.ts'
import { stayAwake } from './loading/awake.ts'
import { checkDeclared } from './loading/declared.ts'
import { createJobs } from './loading/jobs.ts'
import { checkItems } from './loading/items.ts'
import { createSteps, stopUndoMsMax } from './loading/steps.ts'
import type { RegistryService } from './management/plugin-registry.ts'
import { createMetrics } from './telemetry/metrics.ts'
import { createOpenStreams } from './access/open-streams.ts'
import { affected, dependencyOrderOf, type DependencyOrder } from './dependency-order.ts'
import {
  Authenticators,
  PluginFiles,
  type Authenticator,
  type Plugin,
  type RunnableCommand,
  type Scope,
} from './plugin.ts'
import { httpSettings, readConfig, readRates, type Environment, type Settings } from './settings.ts'
import {
  emptyRoutingTable,
  methodOf,
  createRoutingTable,
  type RoutingTable,
} from './routing-table.ts'
import { defineCollection } from './scoped-ports/define.ts'
import { declaredPeers } from './scoped-ports/declared.ts'
import { scopedPort } from './scoped-ports/face.ts'

export type KernelParts = {
  readonly env: Environment
  readonly settings: Settings
  readonly engines: Engines
  readonly log: Log
  readonly strict?: boolean
  readonly peers: Broadcasting
  /** The plugin registry, for plugins that may change the set. */
  readonly pluginRegistry: () => RegistryService
}

export function createKernel({
  env,
  settings,
  engines,
  log,
  peers,
  pluginRegistry,
  strict = false,
}: KernelParts) {
  const clock = engines.engine<Clock>('clock')
  const http = engines.engine<HttpServer>('http')
  const metrics = createMetrics(
    engines.metrics(() =>
      [...table.instances.values()].flatMap(({ plugin }) => Object.keys(plugin.jobs ?? {})),
    ),
  )
  const jobs = createJobs(engines.engine<Queue>('queue'), settings.ROLE, metrics.job)
  const steps = createSteps({ clock, msMax: settings.PLUGIN_STEP_MS })
  let table = emptyRoutingTable
  let generation = 0
  let serving = false
  let changing: Promise<unknown> = Promise.resolve()
  /** Drains of replaced generations that still have calls. */
  const draining = new Set<Promise<unknown>>()

  const streams = createOpenStreams({ clock })
  const host = createKernelInfo({
    streams,
    role: settings.ROLE,
    clock,
    engines,
    metrics: metrics.registry,
    table: () => table,
    serving: () => serving,
  })
  const dispatcher = createDispatcher({
    authenticators: () =>
      (table.points.get(Authenticators.id)?.items ?? []) as readonly Authenticator[],
    isEnabled: (plugin, orgId) => pluginRegistry().isEnabled(plugin, orgId),
    limiter: engines.engine<RateLimiter>('limits'),
    traces: engines.engine<Tracer>('traces'),
    engines,
    streams,
    log,
    strict,
  })
  const isPort = (token: Token) =>
    token.id === Host.id ||
    token.id === Plugins.id ||
    token.id === Broadcast.id ||
    engines.entries().some(([name]) => token.id === `port:${name}`)

  /** The same list each time, unless plugins are limited to organisations. */
  const itemsFor = (point: string, scope: Scope | undefined): readonly unknown[] => {
    const { items = [], plugins = [] } = table.points.get(point) ?? {}
    return pluginRegistry().isLimited()
      ? items.filter((_, i) => pluginRegistry().isEnabled(plugins[i]!, scope?.orgId))
      : items
  }

  /** Limits all emails of one plugin together. */
  const mailWait = (plugin: string) =>
    engines.engine<RateLimiter>('limits').take('emails of a plugin', plugin, {
      count: settings.MAIL_PER_PLUGIN_PER_HOUR,
      perMs: 3_600_000,
    })

  const build = async (
    plan: DependencyOrder,
    plugin: Plugin,
    fresh: ReadonlyMap<string, Instance>,
    previousDrained: () => Promise<void>,
  ): Promise<Instance> => {
    for (const collection of plugin.collections ?? []) {
      const define = () => defineCollection(engines.engine<StorageEngine>('storage'), collection)
      await steps.within(`defining the collection ${collection.name}`, define, {
        msMax: settings.PLUGIN_DEFINE_MS,
        setting: 'PLUGIN_DEFINE_MS',
      })
    }
    const given = (token: Token, registry: Registry): unknown => {
      if (token.id === Host.id) return { ...host, metrics: registry, previousDrained }
      if (token.id === Plugins.id) return pluginRegistry()
      if (token.id === Broadcast.id) return declaredPeers(peers, plugin)
      if (token.id === SystemClock.id) return clock
      if (token.kind === 'point') return (scope?: Scope) => itemsFor(token.id, scope)
      if (token.kind === 'port')
        return scopedPort(
          token.id,
          engines.engine(token.id.slice('port:'.length)),
          plugin,
          mailWait,
        )
      const { plugin: provider, service } = plan.providers.get(token.id)!
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
      given,
    })
  }

  const rowsOf = ({ endpoints }: RoutingTable): Route[] =>
    [...endpoints]
      .filter(([, { operation }]) => settings.ROLE !== 'worker' || operation.everywhere)
      .map(([id, endpoint]) => ({
        method: methodOf(endpoint),
        path: endpoint.path,
        handle: request => dispatcher.handle(table.endpoints.get(id), request),
      }))
  /** Swaps the routing table: synchronous, and all or nothing. */
  const swap = (next: RoutingTable) => {
    const sameRows = [...table.endpoints.keys()].join() === [...next.endpoints.keys()].join()
    const isNew = (instance: Instance) => table.instances.get(instance.plugin.name) !== instance
    // Other parts may refuse first. Then the table stays as it was.
    try {
      for (const instance of next.instances.values()) jobs.take(instance)
      // Endpoints are looked up at each call, so the server needs to know changed rows only.
      if (!sameRows) http.routes(rowsOf(next))
    } catch (error) {
      for (const instance of next.instances.values()) if (isNew(instance)) void jobs.drop(instance)
      if (!sameRows) http.routes(rowsOf(table))
      throw error
    }
    table = next
  }
  /** What a stop is waiting for. */
  let left = ''
  const inTime = (work: Promise<unknown>, until: number): Promise<unknown> => {
    const enough = new AbortController()
    const late = clock
      .sleep(Math.max(0, until - clock.monotonic()), enough.signal)
      .catch(() => undefined)
    return Promise.race([work, late]).finally(() => enough.abort())
  }
  const undone = (instance: Instance, drainMs: number) =>
    instance.retire(drainMs).catch((error: unknown) =>
      log('error', 'plugin.undo', {
        plugin: instance.plugin.name,
        generation: instance.generation,
        error,
      }),
    )
  const retire = async (instance: Instance, until: number) => {
    left = `plugin:${instance.plugin.name}`
    const stopped = jobs.drop(instance)
    await undone(instance, Math.max(0, until - clock.monotonic()))
    // The queue gives up a job that does not end.
    await inTime(stopped, until)
  }

  /** Users of a service go before its provider. All of them share one time limit. */
  const retireAll = async (
    old: readonly Instance[],
    until = clock.monotonic() + settings.DRAIN_MS,
  ): Promise<void> => {
    for (const instance of old.toReversed()) await retire(instance, until)
  }
  /**
   * Refuses a change that would strand live records: the new version must read the old version's
   * formats, unless none are live.
   */
  const refuseStranding = async (changed: ReadonlySet<string>, plan: DependencyOrder) => {
    for (const { plugin, cradle } of table.instances.values()) {
      const next = plan.order.find(({ name }) => name === plugin.name)
      if (
        !plugin.records ||
        (next && !changed.has(plugin.name)) ||
        plugin.records.reads.every(format => next?.records?.reads.includes(format))
      )
        continue
      for (const [format, count] of Object.entries(
        await steps.within(`counting the records of ${plugin.name}`, () =>
          plugin.records!.live(cradle as never),
        ),
      )) {
        if (count === 0 || next?.records?.reads.includes(format)) continue
        const fails = next
          ? `${next.name} ${next.version} cannot read`
          : `Without ${plugin.name} nobody reads`
        throw new Error(`${fails} ${format}, which ${count} live ${plugin.records.of} hold.`)
      }
    }
  }

  /** Checks new plugins only; the serving ones were checked before. */
  const checkFresh = (plugins: readonly Plugin[]) =>
    plugins
      .filter(plugin => table.instances.get(plugin.name)?.plugin !== plugin)
      .forEach(checkDeclared)

  const transition = async (plugins: readonly Plugin[]) => {
    const drain = Promise.withResolvers<void>()
    checkFresh(plugins)
    const plan = dependencyOrderOf(plugins, isPort)
    const fresh = new Map<string, Instance>()
    const changed = new Set(
      plan.order
        .filter(plugin => table.instances.get(plugin.name)?.plugin !== plugin)
        .map(({ name }) => name),
    )
    const rebuilt = affected(plan, changed)
    try {
      for (const plugin of plan.order)
        if (rebuilt.has(plugin.name)) {
          const built = build(plan, plugin, fresh, () => drain.promise)
          fresh.set(plugin.name, await built.catch(blame(plugin, 'cannot be built')))
        }
      const next = createRoutingTable(
        table,
        new Map(
          plan.order.map(({ name }) => [name, fresh.get(name) ?? table.instances.get(name)!]),
        ),
        strict,
      )
      checkItems(next.points, next.instances, name => fresh.has(name))
      for (const { plugin, cradle } of fresh.values())
        if (plugin.health) {
          await steps
            .within('its health', () => plugin.health!(cradle as never))
            .catch(blame(plugin, 'is not healthy'))
        }
      await refuseStranding(changed, plan)
      const old = [...table.instances.values()].filter(
        instance => next.instances.get(instance.plugin.name) !== instance,
      )
      swap(next)
      for (const name of fresh.keys()) metrics.loaded(name)
      const drained = retireAll(old).finally(() => draining.delete(drained))
      draining.add(drained)
      void drained.then(drain.resolve)
      return { drained }
    } catch (error) {
      for (const instance of [...fresh.values()].reverse())
        if (table.instances.get(instance.plugin.name) !== instance) await undone(instance, 0)
      throw error
    }
  }

  return {
    host,
    /** Bounds a step of loading in time. */
    within: steps.within,
    /** Counts a plugin that was refused before a change began. */
    refused: metrics.refused,
    /** Fetches a plugin's missing file; false where no plugin has it. */
    async fetchFiles(entry: string): Promise<boolean> {
      for (const files of (table.points.get(PluginFiles.id)?.items ?? []) as readonly PluginFiles[])
        if (await files.fetchFile(entry)) return true
      return false
    },
    /**
     * Changes the living plugins to these; equal values stay untouched. A failure leaves the old
     * set serving and says why. One change runs at a time. Resolves at the swap, and `drained` when
     * the old generations are undone.
     */
    applyPlugins(plugins: readonly Plugin[]): Promise<{ readonly drained: Promise<unknown> }> {
      const turn = changing.then(() => transition(plugins))
      changing = turn.catch(metrics.refused)
      return turn
    },
    /**
     * Refuses plugins that do not fit together or are not configured, without building anything.
     */
    check(plugins: readonly Plugin[]): void {
      checkFresh(plugins)
      for (const plugin of dependencyOrderOf(plugins, isPort).order)
        [readConfig, readRates].forEach(read => read(plugin, env))
    },
    async listen(): Promise<{ port: number }> {
      metrics.gaugeStreams(() => http.openStreams())
      const level = settings.LOG_REQUESTS ? 'info' : 'debug'
      const isTold = settings.LOG_REQUESTS || settings.LOG_LEVEL === 'debug'
      const report: HttpReport = entry => {
        metrics.report(entry)
        if (!isTold) return
        const { method, route, status, id, seconds } = entry
        const instance = table.endpoints.get(`${method} ${route}`)?.instance
        log(level, 'request.ended', {
          method,
          route,
          status,
          ms: Math.round(seconds * 1e4) / 10,
          request_id: id,
          plugin: instance?.plugin.name,
          generation: instance?.generation,
        })
      }
      const listening = await http.listen(httpSettings(settings), {
        report,
        refuse: dispatcher.refuse,
      })
      serving = true
      return listening
    },
    /** The plugins' commands, which run inside this process. */
    commands: (): Map<string, RunnableCommand> =>
      new Map(
        [...table.instances.values()].flatMap(instance =>
          Object.entries(instance.plugin.commands ?? {}).map(
            ([name, { summary, options, run }]) =>
              [
                name,
                {
                  summary,
                  options,
                  run: (given: unknown) => instance.within({}, deps => run(deps, given as never)),
                },
              ] as const,
          ),
        ),
      ),
    /** What the stop under way is waiting for. */
    left: () => left,
    /**
     * Stops: not ready at once, streams end (clients resume elsewhere), calls and jobs drain, then
     * everything is undone in reverse.
     */
    async stop(): Promise<void> {
      const sleep = stayAwake()
      serving = false
      const until = clock.monotonic() + settings.DRAIN_MS
      const undoneUntil = until + stopUndoMsMax
      // A change under way ends here. Plugins that wait to be loaded are not loaded.
      steps.stop(undoneUntil)
      left = 'port:http'
      await inTime(http.close(), until)
      left = 'a change of plugins'
      await inTime(changing, undoneUntil)
      await inTime(Promise.all(draining), undoneUntil)
      await retireAll([...table.instances.values()], until)
      table = emptyRoutingTable
      left = 'the ports'
      await inTime(engines.close(), clock.monotonic() + stopUndoMsMax)
      sleep()
    },
  }
}
export type Kernel = ReturnType<typeof createKernel>

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
