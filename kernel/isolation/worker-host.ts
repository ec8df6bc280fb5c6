// Hosts the plugin's instance in the thread. It calls ports through the other thread, which calls
// the plugin's handlers.
import type { MessagePort } from 'node:worker_threads'
import { SystemClock, type Clock } from '#ports/clock.ts'
import { loadAdapter } from '../adapters.ts'
import { createInstance, type Instance } from '../loading/instance.ts'
import { createSteps } from '../loading/steps.ts'
import type { Command, Plugin } from '../plugin.ts'
import { remoteProxy } from './remote-proxy.ts'
import { createRpc, type Rpc, type Message } from './rpc.ts'
import type { Item, Start } from './manifest.ts'

type Values = Readonly<Record<string, unknown>>

const openClock = async ({ url, folders }: Start['clock']): Promise<Clock> => {
  const { adapter, url: place } = await loadAdapter('clock', 'CLOCK_URL', url, folders)
  return (await adapter.open({ url: place, dataDir: '', log: () => undefined } as never)) as Clock
}
const itemOf = (item: unknown): Item => {
  const all = Object.entries(item as object)
  const isMethod = ([, value]: [string, unknown]) => typeof value === 'function'
  return {
    fields: Object.fromEntries(all.filter(one => !isMethod(one))),
    methods: all.filter(isMethod).map(([name]) => name),
  }
}
/** What the other side can call. */
const offers = (
  plugin: Plugin,
  instance: Instance,
): Readonly<Record<string, (asked: never) => unknown>> => ({
  route: ({ key, values }: { key: string; values: Values }) =>
    instance.within(values, plugin.routes![key]!),
  job: ({ name, values }: { name: string; values: Values }) =>
    instance.within(values, plugin.jobs![name]!.run),
  command: ({ name, options }: { name: string; options: unknown }) =>
    instance.within({}, deps =>
      (plugin.commands![name] as Command<never>).run(deps, options as never),
    ),
  item: ({ at, method, args }: { at: number; method: string; args: unknown[] }) =>
    (instance.items[at]!.item as Record<string, (...args: unknown[]) => unknown>)[method]!(...args),
  health: () => plugin.health?.(instance.cradle as never),
  pulse: () => process.memoryUsage().arrayBuffers,
  retire: () => instance.retire(0),
})
/** Serves the plugin and answers its contributed items. */
export async function serve(
  port: MessagePort,
  plugin: Plugin,
  { clock: time, stepMs, serve: given }: Start,
): Promise<readonly Item[]> {
  const { generation, config, rates } = given!
  const clock = await openClock(time)
  let answers: ReturnType<typeof offers> = {}
  const link: Rpc = createRpc(
    message => port.postMessage(message),
    (target, value) => answers[target]!(value as never),
  )
  port.on('message', (message: Message) => link.receive(message))
  const instance = await createInstance({
    plugin,
    generation,
    config,
    rates,
    clock,
    steps: createSteps({ clock, msMax: stepMs }),
    log: (level, event, fields) =>
      void link
        .call('log', {
          level,
          event: event.slice(plugin.name.length + 1),
          fields: JSON.parse(JSON.stringify(fields ?? {}, errorAsJson)) as object,
        })
        .catch(() => undefined),
    given: token => (token.id === SystemClock.id ? clock : remoteProxy(link, token.id)),
  })
  answers = offers(plugin, instance)
  return instance.items.map(({ item }) => itemOf(item))
}
/** JSON.stringify drops an error's message and stack. */
const errorAsJson = (_: string, value: unknown) =>
  value instanceof Error ? { message: value.message, stack: value.stack } : value
