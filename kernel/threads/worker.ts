// The thread of one generation of one plugin: what it uses is reached through the other side, what it offers is called from there.
import { parentPort, workerData } from 'node:worker_threads'
import type { Clock } from '#ports/clock.ts'
import { SystemClock } from '#ports/clock.ts'
import { loadAdapter } from '../adapters.ts'
import { createGenerations } from '../generations.ts'
import { createInstance, type Instance } from '../instance.ts'
import type { Plugin } from '../plugin.ts'
import { far } from './far.ts'
import { createLink, type Link, type Message } from './link.ts'
import { manifestOf, type Hello, type Item, type Start } from './manifest.ts'

const port = parentPort!, { entry, clock: { url, folders }, serve } = workerData as Start
type Values = Readonly<Record<string, unknown>>

const openClock = async (): Promise<Clock> => {
  const { adapter, url: place } = await loadAdapter('clock', 'CLOCK_URL', url, folders)
  return (await adapter.open({ url: place, dataDir: '', log: () => undefined } as never)) as Clock
}
const itemOf = (item: unknown): Item => {
  const all = Object.entries(item as object), isMethod = ([, value]: [string, unknown]) => typeof value === 'function'
  return { fields: Object.fromEntries(all.filter(one => !isMethod(one))), methods: all.filter(isMethod).map(([name]) => name) }
}
/** What the other side may ask for. */
const offers = (plugin: Plugin, instance: Instance): Readonly<Record<string, (asked: never) => unknown>> => ({
  route: ({ key, values }: { key: string; values: Values }) => instance.within(values, plugin.routes![key]!),
  job: ({ name, values }: { name: string; values: Values }) => instance.within(values, plugin.jobs![name]!.run),
  command: ({ name, options }: { name: string; options: unknown }) => instance.within({}, deps => plugin.commands![name]!.run(deps, options as never)),
  item: ({ at, method, args }: { at: number; method: string; args: unknown[] }) => (instance.items[at]!.item as Record<string, (...args: unknown[]) => unknown>)[method]!(...args),
  health: () => plugin.health?.(instance.cradle as never),
  pulse: () => process.memoryUsage().arrayBuffers,
  retire: () => instance.retire(0),
})
async function live(plugin: Plugin, { generation, config, rates }: NonNullable<Start['serve']>): Promise<readonly Item[]> {
  const clock = await openClock()
  let answers: ReturnType<typeof offers> = {}
  const link: Link = createLink(message => port.postMessage(message), (target, value) => answers[target]!(value as never))
  port.on('message', (message: Message) => link.receive(message))
  const instance = await createInstance({
    plugin, generation, config, rates, clock,
    log: (level, event, fields) => void link.call('log', { level, event: event.slice(plugin.name.length + 1), fields: JSON.parse(JSON.stringify(fields ?? {}, told)) as object }).catch(() => undefined),
    given: token => (token.id === SystemClock.id ? clock : far(link, token.id)),
  })
  answers = offers(plugin, instance)
  return instance.items.map(({ item }) => itemOf(item))
}
/** An error's own fields are not JSON's. */
const told = (_: string, value: unknown) => (value instanceof Error ? { message: value.message, stack: value.stack } : value)

const hello = async (): Promise<Hello> => {
  const plugin = await createGenerations('thread').load({ entry })
  return { manifest: manifestOf(plugin), items: serve ? await live(plugin, serve) : [] }
}
port.postMessage(['hello', await hello().catch((error: Error): Hello => ({ refused: error.message }))])
