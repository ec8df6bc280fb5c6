// One generation of one plugin: its container, its undo stack, and the count of its running calls.
import { asFunction, asValue, createContainer, type AwilixContainer } from 'awilix'
import { Registry } from 'prom-client'
import type { Caller } from '#contracts/contract.ts'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Rate } from '#ports/limits.ts'
import type { Token } from '#ports/token.ts'
import { atMost } from '../deadline.ts'
import type { Steps } from './steps.ts'
import type { Plugin } from '../plugin.ts'

type Cradle = Record<string, unknown>
export type Instance = {
  readonly plugin: Plugin
  readonly generation: number
  readonly rates: Readonly<Record<string, Rate>>
  readonly cradle: Cradle
  readonly metrics: Registry
  /** Contributed items, made once. */
  readonly items: readonly { readonly point: string; readonly item: unknown }[]
  /**
   * Runs `call` with the request's values beside the deps. The call is counted, so that a drain can
   * wait for it.
   */
  within<T>(
    values: Readonly<Record<string, unknown>>,
    call: (deps: never) => T | Promise<T>,
  ): Promise<T>
  service(name: string): unknown
  /**
   * Waits until no call runs or `drainMs` passed. Then aborts with `handover`, and undoes in
   * reverse.
   */
  retire(drainMs: number): Promise<void>
}
type Parts = {
  readonly plugin: Plugin
  readonly generation: number
  readonly config: object
  readonly rates: Readonly<Record<string, Rate>>
  readonly log: Log
  readonly clock: Clock
  readonly steps: Steps
  /** The thing behind a token, as this plugin may see it. */
  given(token: Token, metrics: Registry): unknown
}
export type RequestValues = {
  caller: Caller | undefined
  params: unknown
  query: unknown
  headers: unknown
  body: unknown
  after: number
  address: string
  signal: AbortSignal
}

/** Counts calls of a contributed item as calls of this plugin, until their results are there. */
function whileInside(
  item: unknown,
  counted: <T>(call: () => T | Promise<T>) => Promise<T>,
): unknown {
  if (typeof item !== 'object' || item === null) return item
  const methods = new Map<unknown, unknown>()
  return new Proxy(item, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      if (!methods.has(value))
        methods.set(value, (...args: unknown[]) => {
          const answer: unknown = Reflect.apply(value, target, args)
          return answer instanceof Promise ? counted(() => answer) : answer
        })
      return methods.get(value)
    },
  })
}

export async function createInstance({
  plugin,
  generation,
  config,
  rates,
  log,
  clock,
  steps,
  given,
}: Parts): Promise<Instance> {
  const root: AwilixContainer<Cradle> = createContainer<Cradle>({ strict: true })
  const stack = new AsyncDisposableStack()
  const abort = new AbortController()
  const metrics = new Registry()
  let inside = 0
  let idle: (() => void) | undefined
  root.register({
    config: asValue(config),
    rates: asValue(rates),
    signal: asValue(abort.signal),
    log: asValue((level: Parameters<Log>[0], event: string, fields?: object) =>
      log(level, `${plugin.name}.${event}`, { ...fields, plugin: plugin.name, generation }),
    ),
    defer: asValue((undo: () => unknown) => {
      if (!stack.disposed) return stack.defer(() => steps.undo(undo))
      // Undoes at once: the start took too long and was given up, so nothing would undo this later.
      void steps
        .undo(undo)
        .catch((error: unknown) =>
          log('error', 'plugin.undo', { plugin: plugin.name, generation, error }),
        )
      throw new Error(`this generation of ${plugin.name} has ended`)
    }),
  })
  for (const [name, token] of Object.entries(plugin.uses ?? {}))
    root.register(name, asValue(given(token, metrics)))
  for (const [name, make] of Object.entries(plugin.services ?? {}))
    root.register(name, asFunction(make as (deps: Cradle) => unknown).singleton())

  const leave = () => {
    if (--inside === 0) idle?.()
  }
  const counted = async <T>(call: () => T | Promise<T>): Promise<T> => {
    inside++
    try {
      return await call()
    } finally {
      leave()
    }
  }
  const retire = async (drainMs: number) => {
    if (inside > 0) {
      const drained = new Promise<void>(done => {
        idle = done
      })
      await atMost(clock, drainMs, drained, () => undefined)
      if (inside > 0) log('warn', 'plugin.left', { plugin: plugin.name, generation, calls: inside })
    }
    abort.abort('handover')
    await stack.disposeAsync()
    await root.dispose()
  }
  try {
    for (const name of Object.keys(plugin.services ?? {})) root.resolve(name)
    const makeItems = () =>
      Promise.all(
        (plugin.contributes ?? []).map(async ({ point, make }) => ({
          point,
          item: whileInside(await make(root.cradle as never), counted),
        })),
      )
    const items = await steps.within('making what it contributes', makeItems)
    if (plugin.start)
      await steps.within('its start', async () => plugin.start!(root.cradle as never))
    return {
      plugin,
      generation,
      rates,
      items,
      metrics,
      cradle: root.cradle,
      retire,
      service: name => root.resolve(name),
      // A request's values come before the container's cradle in the look-up, and the cradle stays
      // strict. The library's createScope() would build a whole container for each request, which
      // costs 10 µs and garbage.
      within: (values, call) => counted(() => call({ __proto__: root.cradle, ...values } as never)),
    }
  } catch (error) {
    await retire(0).catch((cause: unknown) =>
      log('error', 'plugin.undo', { plugin: plugin.name, generation, error: cause }),
    )
    throw error
  }
}
