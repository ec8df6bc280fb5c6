// The set of plugins that serve, and how it is exchanged for another: what every change of the
// registry is made of.
import { existsSync } from 'node:fs'
import { fault } from '#contracts/faults.ts'
import { importOnce, type ModuleLoader, type Source } from '../module-loader.ts'
import type { KernelInfo } from '../kernel-ports.ts'
import type { Crashes } from '../loading/crashes.ts'
import type { Steps } from '../loading/steps.ts'
import type { Plugin } from '../plugin.ts'
import type { ResourceLimits } from '../kernel-ports.ts'
import type { Isolation } from '../isolation/proxy-plugin.ts'
import type { Compile } from '../validation/validate.ts'
import type { DesiredStateStore } from './desired-state.ts'
import { builtInDir, sourcesIn, stampOf } from '../loading/sources.ts'

type Version = {
  readonly plugin: Plugin
  readonly source?: Source
  /** The limits of the plugin's thread; absent in the process. */
  readonly isolated?: ResourceLimits
}
export type Entry = Version & {
  readonly stamp: string
  /** The version before, for a rollback. */
  readonly before?: Version
}
export const versionOf = ({ plugin, source, isolated }: Entry): Version => ({
  plugin,
  ...(source ? { source } : {}),
  ...(isolated ? { isolated } : {}),
})
type Entries = ReadonlyMap<string, Entry>

/** What the registry needs of the kernel. */
type Serving = {
  /** Makes these the serving plugins; resolves at the swap. */
  applyPlugins(plugins: readonly Plugin[], compile?: Compile): Promise<unknown>
  /** Refuses plugins that could not be built together. */
  check(plugins: readonly Plugin[]): void
  /** Fetches a missing file; false where no plugin has it. */
  fetchFile(entry: string): Promise<boolean>
  /** Bounds a step of loading in time. */
  readonly within: Steps['within']
  /** Counts a plugin that could not even be imported. */
  refused(): void
  readonly host: Pick<KernelInfo, 'plugins'>
}
export type Parts = {
  readonly choices: DesiredStateStore
  readonly moduleLoader: ModuleLoader
  readonly isolation: Isolation
  readonly kernel: Serving
  /** Which plugins ended the process before. */
  readonly crashes: Crashes
}

export const refuse = (why: string, cause?: unknown) => fault('PLUGIN_REFUSED', { why }, { cause })
export const whyOf = (error: unknown) => (error as Error).message

/** The plugins of this program. One that cannot be imported is its defect, and ends the start. */
export const importBuiltIn = (): Promise<Entry[]> =>
  Promise.all(
    sourcesIn(builtInDir).map(async source => ({
      source,
      stamp: stampOf(source),
      plugin: await importOnce(source),
    })),
  )

export type ServedPlugins = ReturnType<typeof createServedPlugins>
export function createServedPlugins({ choices, moduleLoader, isolation, kernel, crashes }: Parts) {
  let entries: Entries = new Map()
  /** By entry: whose it was found to be. */
  const names = new Map<string, string>()

  const generationOf = (name: string) =>
    kernel.host.plugins().find(plugin => plugin.name === name)?.generation
  const get = (name: string): Entry => {
    const entry = entries.get(name)
    if (!entry) throw fault('NOT_FOUND', { what: `plugin "${name}"` })
    return entry
  }
  /** `chosen`: the thread's limits, null for the process, undefined for the earlier choice. */
  const importFrom = async (source: Source, chosen?: ResourceLimits | null): Promise<Entry> => {
    if (
      !existsSync(source.entry) &&
      !(await kernel.within('bringing its files', () => kernel.fetchFile(source.entry)))
    )
      throw refuse(`There is nothing at ${source.entry}.`)
    try {
      const stamp = stampOf(source)
      const before = choices.read().isolated
      // If any plugin is isolated, a new plugin is described in a thread first. Its code must not
      // enter the process before its name is known.
      const manifest =
        chosen || (chosen === undefined && Object.keys(before).length > 0)
          ? await isolation.describe(source)
          : undefined
      const isolated = manifest && (chosen ?? before[manifest.name])
      const plugin = isolated
        ? isolation.proxyOf(source, isolated, manifest)
        : await crashes.during(source.entry, () =>
            kernel.within('its import', () => moduleLoader.load(source)),
          )
      if (plugin.names && !source.entry.startsWith(builtInDir))
        throw new Error(
          `${plugin.name} asks for names without its own before them, which only a plugin ` +
            'of the platform has.',
        )
      names.set(source.entry, plugin.name)
      return { source, stamp, plugin, ...(isolated ? { isolated } : {}) }
    } catch (error) {
      kernel.refused()
      throw refuse(whyOf(error), error)
    }
  }
  const adopt = async (next: Entries, compile?: Compile): Promise<void> => {
    const plugins = [...next.values()].map(({ plugin }) => plugin)
    await kernel.applyPlugins(plugins, compile)
    entries = next
  }
  /** `entry`: whose code begins to run, where that is new. */
  const swap = (next: Entries, sentence: string, entry = '') =>
    (entry === '' ? adopt(next) : crashes.during(entry, () => adopt(next))).catch(
      (error: unknown) => Promise.reject(refuse(`${sentence} ${whyOf(error)}`, error)),
    )
  const swapIn = (name: string, plugin: Entry, sentence: string, entry?: string) =>
    swap(new Map([...entries, [name, plugin]]), sentence, entry)
  const stays = (name: string) => {
    const { plugin } = get(name)
    return `${name} ${plugin.version} (generation ${generationOf(name)}) goes on serving.`
  }
  /** Imports the plugin again from the same place. */
  const renewed = async (name: string, chosen?: ResourceLimits | null): Promise<Entry> => {
    const old = get(name)
    if (!old.source)
      throw refuse(
        `${name} was handed in by the program that started the kernel; there is nothing to ` +
          'read it from.',
      )
    const { plugin, ...rest } = await importFrom(old.source, chosen).catch((error: unknown) =>
      Promise.reject(refuse(`${whyOf(error)} ${stays(name)}`, error)),
    )
    if (plugin.name !== name)
      throw refuse(`${old.source.entry} now says that it is ${plugin.name}. ${stays(name)}`)
    return { ...rest, plugin, before: versionOf(old) }
  }
  const goBack = async (
    name: string,
  ): Promise<{ readonly now: Entry; readonly before: Version }> => {
    const now = get(name)
    const { before } = now
    if (!before)
      throw refuse(
        `${name} ${now.plugin.version} is the first that served; there is nothing to go back to.`,
      )
    const stamp = before.source?.entry === now.source?.entry ? now.stamp : stampOf(before.source!)
    await swapIn(name, { ...before, stamp, before: versionOf(now) }, stays(name))
    return { now, before }
  }
  return {
    entries: () => entries,
    names,
    /** NOT_FOUND where it does not serve. */
    get,
    generationOf,
    hasSource: ({ entry }: Source) =>
      [...entries.values()].some(({ source }) => source?.entry === entry),
    importFrom,
    begin: (first: readonly Entry[], compile?: Compile) =>
      adopt(new Map(first.map(entry => [entry.plugin.name, entry])), compile),
    /** It serves beside the others, or in the place of the one before. */
    swapIn,
    /** Serves what its files say now. */
    reload: async (name: string, chosen?: ResourceLimits | null) =>
      swapIn(name, await renewed(name, chosen), stays(name)),
    unload: (name: string) =>
      swap(new Map([...entries].filter(([one]) => one !== name)), stays(name)),
    goBack,
    /** What a refusal says of a plugin that was to be exchanged. */
    stays,
  }
}
