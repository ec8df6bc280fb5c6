// Loads plugins, swaps them and stops them. Boot, reload, unload and stop are one algorithm: from the living set to another.
import type { TSchema } from 'typebox'
import type { Log } from '#ports/adapter.ts'
import { SystemClock, type Clock } from '#ports/clock.ts'
import type { HttpServer } from '#ports/http.ts'
import type { RateLimiter } from '#ports/limits.ts'
import type { Queue } from '#ports/queue.ts'
import type { StorageEngine } from '#ports/storage.ts'
import type { Lifecycle, Token } from '#ports/token.ts'
import type { Engines } from './adapters.ts'
import { createDispatcher, endpointsOf, type Endpoint } from './dispatch.ts'
import { Host, type Check, type Introspection } from './host.ts'
import { createInstance, type Instance } from './instance.ts'
import { createMetrics } from './metrics.ts'
import { affected, kernelVersion, planOf, type Plan } from './plan.ts'
import { Authenticators, type Authenticator, type Command, type Plugin } from './plugin.ts'
import { readConfig, readRates, type Environment, type Settings } from './settings.ts'
import { faceOf } from './tenancy.ts'

/** Everything that a request can meet; replaced whole, never changed. */
type Table = { readonly instances: ReadonlyMap<string, Instance>; readonly endpoints: ReadonlyMap<string, Endpoint>; readonly points: ReadonlyMap<string, readonly unknown[]> }
const emptyTable: Table = { instances: new Map(), endpoints: new Map(), points: new Map() }

export type KernelParts = { readonly env: Environment; readonly settings: Settings; readonly engines: Engines; readonly log: Log; readonly strict?: boolean }

export function createKernel({ env, settings, engines, log, strict = false }: KernelParts) {
  const clock = engines.engine<Clock>('clock'), http = engines.engine<HttpServer>('http'), queue = engines.engine<Queue>('queue')
  const metrics = createMetrics()
  const undefine = new Map<Instance, (() => Promise<void>)[]>()
  let table = emptyTable, generation = 0, serving = false, changing: Promise<unknown> = Promise.resolve()

  const dispatcher = createDispatcher({
    authenticators: () => (table.points.get(Authenticators.id) ?? []) as readonly Authenticator[],
    limiter: engines.engine<RateLimiter>('limits'), durable: engines.durable, log, strict,
  })

  const asCheck = async (name: string, probe: () => Promise<unknown>): Promise<Check> => {
    const enough = new AbortController()
    const late = clock.sleep(2000, enough.signal).then(() => Promise.reject(new Error('no answer within 2 s')))
    late.catch(() => undefined)
    return Promise.race([probe(), late]).then(() => ({ name, ok: true }), (error: Error) => ({ name, ok: false, detail: error.message })).finally(() => enough.abort())
  }
  const host: Introspection = {
    version: kernelVersion, processId: clock.id(), metrics: metrics.registry,
    operations: () => [...table.endpoints.values()].map(({ key, path, operation, instance }) => ({ key, path, operation, plugin: instance.plugin.name })),
    events: () => Object.assign({}, ...[...table.instances.values()].map(({ plugin }) => plugin.emits ?? {})) as Record<string, TSchema>,
    plugins: () => [...table.instances.values()].map(({ plugin, generation }) => ({ name: plugin.name, version: plugin.version, generation })),
    serving: () => serving,
    health: () => Promise.all([
      ...engines.entries().filter(([, part]) => part.ping).map(([name, part]) => asCheck(`port:${name}`, () => (part as Lifecycle).ping())),
      ...[...table.instances.values()].filter(({ plugin }) => plugin.health).map(({ plugin, cradle }) => asCheck(`plugin:${plugin.name}`, async () => plugin.health!(cradle as never))),
    ]),
  }
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

  const tabulate = (instances: ReadonlyMap<string, Instance>): Table => {
    const points = new Map<string, unknown[]>()
    for (const { items } of instances.values()) for (const { point, item } of items) points.set(point, [...(points.get(point) ?? []), item])
    const known = (instance: Instance) => [...table.endpoints.values()].filter(endpoint => endpoint.instance === instance)
    const endpoints = [...instances.values()].flatMap(instance => (table.instances.get(instance.plugin.name) === instance ? known(instance) : endpointsOf(instance, strict)))
    return { instances, points, endpoints: new Map(endpoints.map(endpoint => [idOf(endpoint), endpoint])) }
  }
  const idOf = ({ key, path }: Pick<Endpoint, 'key' | 'path'>) => `${key.slice(0, key.indexOf(' '))} ${path}`

  /** The only visible moment: synchronous. */
  const swap = (next: Table) => {
    const before = [...table.endpoints.keys()].join(), after = [...next.endpoints.keys()].join()
    table = next
    metrics.swapped()
    if (before !== after) http.routes([...next.endpoints.values()].map(({ key, path }) => {
      const id = idOf({ key, path })
      return { method: id.slice(0, id.indexOf(' ')) as 'GET', path, handle: request => dispatcher.handle(table.endpoints.get(id), request) }
    }))
    for (const instance of next.instances.values()) {
      if (undefine.has(instance)) continue
      undefine.set(instance, Object.entries(instance.plugin.jobs ?? {}).map(([name, { run, options }]) =>
        queue.define(name, job => instance.within({ data: job.data, attempt: job.attempt, signal: job.signal }, run), options)))
    }
  }
  const retire = async (instance: Instance) => {
    const jobs = (undefine.get(instance) ?? []).map(stop => stop())
    undefine.delete(instance)
    await instance.retire(settings.DRAIN_MS).catch((error: unknown) => log('error', 'plugin.undo', { plugin: instance.plugin.name, error }))
    await Promise.all(jobs)
  }

  const transition = async (plugins: readonly Plugin[]) => {
    const plan = planOf(plugins, isPort)
    const changed = new Set(plan.order.filter(plugin => table.instances.get(plugin.name)?.plugin !== plugin).map(({ name }) => name))
    const rebuilt = affected(plan, changed), fresh = new Map<string, Instance>()
    try {
      for (const plugin of plan.order) if (rebuilt.has(plugin.name)) fresh.set(plugin.name, await build(plan, plugin, fresh))
      const next = tabulate(new Map(plan.order.map(({ name }) => [name, fresh.get(name) ?? table.instances.get(name)!])))
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
      const { TLS_CERT: cert, TLS_KEY: key, TLS_REDIRECT_PORT: redirectPort } = settings
      metrics.gaugeStreams(() => http.openStreams())
      const listening = await http.listen({
        host: settings.HOST, port: settings.PORT, trustProxy: settings.TRUST_PROXY, streamsMax: settings.HTTP_STREAMS_MAX, bodyBytesPerSecondMin: settings.HTTP_BODY_BYTES_PER_SECOND_MIN,
        corsOrigins: settings.CORS_ORIGINS.split(',').map(origin => origin.trim()).filter(Boolean),
        ...(cert && key ? { tls: { cert, key, ...(redirectPort === undefined ? {} : { redirectPort }) } } : {}),
      }, { report: metrics.report, refuse: dispatcher.refuse })
      serving = true
      return listening
    },
    /** A plugin's command, run inside this process. */
    commands: () => new Map([...table.instances.values()].flatMap(instance => Object.entries(instance.plugin.commands ?? {}).map(([name, command]) => [name, {
      ...command as Omit<Command<never>, 'run'>, run: (options: unknown) => instance.within({}, deps => command.run(deps, options as never)),
    }] as const))),
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
