// The plugin registry: which plugins serve, from where, and in which generation. It loads, reloads,
// unloads and rolls back, and stores the operator's choices.
import { existsSync } from 'node:fs'
import { fault, hasCode } from '#contracts/faults.ts'
import type { Log } from '#ports/adapter.ts'
import { importOnce, type ModuleLoader, type Source } from '../module-loader.ts'
import type { PluginStatus, PluginRegistry } from '../kernel-ports.ts'
import type { Crashes } from '../loading/crashes.ts'
import type { Steps } from '../loading/steps.ts'
import type { Plugin } from '../plugin.ts'
import { resourceLimitsDefault, type ResourceLimits } from '../isolation/manifest.ts'
import type { Isolation } from '../isolation/proxy-plugin.ts'
import type { DesiredStateStore, Editable } from './desired-state.ts'
import { builtInDir, sourceAt, sourcesIn, stampOf } from './sources.ts'

type Version = {
  readonly plugin: Plugin
  readonly source?: Source
  /** The limits of the plugin's thread; absent in the process. */
  readonly isolated?: ResourceLimits
}
type Entry = Version & {
  readonly stamp: string
  /** The version before, for a rollback. */
  readonly before?: Version
}
const versionOf = ({ plugin, source, isolated }: Entry): Version => ({
  plugin,
  ...(source ? { source } : {}),
  ...(isolated ? { isolated } : {}),
})
type Entries = ReadonlyMap<string, Entry>

type Parts = {
  readonly choices: DesiredStateStore
  readonly pluginsDir: string | undefined
  readonly generations: ModuleLoader
  readonly threads: Isolation
  readonly log: Log
  /** Makes these the serving plugins; resolves at the swap. */
  readonly applyPlugins: (plugins: readonly Plugin[]) => Promise<unknown>
  /** Refuses plugins that could not be built together. */
  readonly check: (plugins: readonly Plugin[]) => void
  readonly generationOf: (name: string) => number | undefined
  /** Fetches a missing file; false where no plugin has it. */
  readonly fetchFiles: (entry: string) => Promise<boolean>
  /** Which plugins ended the process before. */
  readonly crashes: Crashes
  /** Bounds a step of loading in time. */
  readonly within: Steps['within']
  /** Counts a plugin that could not even be imported. */
  readonly refused: () => void
  /** Tells the other processes that this one changed something. */
  readonly changed: (what?: { readonly rolledBack: string }) => void
}

const refuse = (why: string, cause?: unknown) => fault('PLUGIN_REFUSED', { why }, { cause })
const whyOf = (error: unknown) => (error as Error).message

export function createPluginRegistry({
  choices,
  pluginsDir,
  generations,
  threads,
  log,
  applyPlugins,
  check,
  generationOf,
  fetchFiles,
  crashes,
  within,
  refused,
  changed,
}: Parts) {
  let entries: Entries = new Map()
  /** Entry → why it failed; and entry → the plugin's name where it is known. */
  const failed = new Map<string, string>()
  const names = new Map<string, string>()
  /** True when a source was unavailable while this process followed others: it looks again. */
  let isBehind = false
  let turn: Promise<unknown> = Promise.resolve()
  let limits: ReadonlyMap<string, ReadonlySet<string>> = new Map()

  /** Makes one change at a time, so that each change sees the result of the one before. */
  const inTurn = <T>(act: () => Promise<T>): Promise<T> => {
    const mine = turn.then(act)
    turn = mine.catch(() => undefined)
    return mine
  }
  const serving = (name: string): Entry => {
    const entry = entries.get(name)
    if (!entry) throw fault('NOT_FOUND', { what: `plugin "${name}"` })
    return entry
  }
  /** `chosen`: the thread's limits, null for the process, undefined for the earlier choice. */
  const importNow = async (source: Source, chosen?: ResourceLimits | null): Promise<Entry> => {
    if (
      !existsSync(source.entry) &&
      !(await within('bringing its files', () => fetchFiles(source.entry)))
    )
      throw refuse(`There is nothing at ${source.entry}.`)
    try {
      const stamp = stampOf(source)
      const before = choices.read().isolated
      // Where some plugins run in threads, no code is imported into the process before it is known
      // whose it is.
      const manifest =
        chosen || (chosen === undefined && Object.keys(before).length > 0)
          ? await threads.describe(source)
          : undefined
      const isolated = manifest && (chosen ?? before[manifest.name])
      const plugin = isolated
        ? threads.standIn(source, isolated, manifest)
        : await crashes.during(source.entry, () =>
            within('its import', () => generations.load(source)),
          )
      if (plugin.names && !source.entry.startsWith(builtInDir))
        throw new Error(
          `${plugin.name} asks for names without its own before them, which only a plugin ` +
            'of the platform has.',
        )
      names.set(source.entry, plugin.name)
      return { source, stamp, plugin, ...(isolated ? { isolated } : {}) }
    } catch (error) {
      refused()
      throw refuse(whyOf(error), error)
    }
  }
  const adopt = async (next: Entries): Promise<void> => {
    await applyPlugins([...next.values()].map(({ plugin }) => plugin))
    entries = next
  }
  const swap = (next: Entries, sentence: string, entry = '') =>
    (entry === '' ? adopt(next) : crashes.during(entry, () => adopt(next))).catch(
      (error: unknown) => Promise.reject(refuse(`${sentence} ${whyOf(error)}`, error)),
    )
  const sourcesNow = () => {
    const { loaded, off } = choices.read()
    return {
      off,
      sources: [
        ...sourcesIn(builtInDir),
        ...(pluginsDir === undefined ? [] : sourcesIn(pluginsDir)),
        ...loaded.map(entry => ({ entry })),
      ],
    }
  }
  /** Stores the operator's choice, then tells the other processes. */
  const choose = async (edit: (choices: Editable) => void = () => undefined): Promise<void> => {
    await choices.edit(edit)
    limit()
    changed()
  }
  const limit = () => {
    limits = new Map(
      Object.entries(choices.read().only).map(([name, organisations]) => [
        name,
        new Set(organisations),
      ]),
    )
  }
  const isFound = ({ entry }: Source) => sourcesNow().sources.some(one => one.entry === entry)
  const stays = (name: string) => {
    const { plugin } = serving(name)
    return `${name} ${plugin.version} (generation ${generationOf(name)}) goes on serving.`
  }
  const listed = (name: string): PluginStatus => {
    const { plugin, source, before, isolated = null } = serving(name)
    return {
      name,
      version: plugin.version,
      state: 'serving',
      generation: generationOf(name) ?? 0,
      source: source?.entry ?? '',
      previous: before?.plugin.version ?? null,
      organisations: limits.has(name) ? [...limits.get(name)!] : null,
      isolated,
      detail: '',
    }
  }
  /** Imports the plugin again from the same place. */
  const renewed = async (name: string, chosen?: ResourceLimits | null): Promise<Entry> => {
    const old = serving(name)
    if (!old.source)
      throw refuse(
        `${name} was handed in by the program that started the kernel; there is nothing to ` +
          'read it from.',
      )
    const { plugin, ...rest } = await importNow(old.source, chosen).catch((error: unknown) =>
      Promise.reject(refuse(`${whyOf(error)} ${stays(name)}`, error)),
    )
    if (plugin.name !== name)
      throw refuse(`${old.source.entry} now says that it is ${plugin.name}. ${stays(name)}`)
    return { ...rest, plugin, before: versionOf(old) }
  }
  const goBack = async (
    name: string,
  ): Promise<{ readonly now: Entry; readonly before: Version }> => {
    const now = serving(name)
    const { before } = now
    if (!before)
      throw refuse(
        `${name} ${now.plugin.version} is the first that served; there is nothing to go back to.`,
      )
    await swap(
      new Map([
        ...entries,
        [
          name,
          {
            ...before,
            stamp: before.source?.entry === now.source?.entry ? now.stamp : stampOf(before.source!),
            before: versionOf(now),
          },
        ],
      ]),
      stays(name),
    )
    return { now, before }
  }

  const pluginRegistry: PluginRegistry = {
    list: () => [
      ...[...entries.keys()].sort().map(listed),
      ...choices.read().off.map(
        (name): PluginStatus => ({
          name,
          version: '',
          state: 'off',
          generation: 0,
          source: '',
          previous: null,
          organisations: null,
          isolated: null,
          detail: '',
        }),
      ),
      ...[...failed].map(
        ([source, detail]): PluginStatus => ({
          name: names.get(source) ?? '',
          version: '',
          state: 'failed',
          generation: 0,
          source,
          previous: null,
          organisations: null,
          isolated: null,
          detail,
        }),
      ),
    ],
    load: (what, { replace = false, isolated } = {}) =>
      inTurn(async () => {
        const { off } = choices.read()
        const isName = off.includes(what)
        let entry: Entry | undefined
        for (const source of isName ? sourcesNow().sources : [sourceAt(what)]) {
          if ([...entries.values()].some(one => one.source?.entry === source.entry)) continue
          if (!isName) crashes.forget(source.entry)
          const found = await importNow(source, isolated)
          if (!isName || found.plugin.name === what) entry = found
        }
        if (!entry) throw refuse(`${what} serves already; reload it.`)
        const { name } = entry.plugin
        const other = entries.get(name)
        if (other && !replace)
          throw refuse(
            `${name} is served from ${other.source?.entry ?? 'elsewhere'}; unload it first.`,
          )
        await swap(
          new Map([...entries, [name, other ? { ...entry, before: versionOf(other) } : entry]]),
          other ? stays(name) : `${name} was not loaded.`,
          entry.source!.entry,
        )
        await choose(({ loaded, off: out, isolated: chosen }) => {
          out.delete(name)
          if (isolated) chosen.set(name, isolated)
          if (other?.source) loaded.delete(other.source.entry)
          if (!isFound(entry.source!)) loaded.add(entry.source!.entry)
        })
        failed.delete(entry.source!.entry)
        return listed(name)
      }),
    reload: name =>
      inTurn(async () => {
        await swap(new Map([...entries, [name, await renewed(name)]]), stays(name))
        if (choices.shared) await choose()
        return listed(name)
      }),
    rollback: name =>
      inTurn(async () => {
        const { now, before } = await goBack(name)
        // If the versions lie in different places, the next start must find this one.
        await choose(({ loaded, isolated }) => {
          if (before.isolated) isolated.set(name, before.isolated)
          else isolated.delete(name)
          if (!before.source || !now.source || before.source.entry === now.source.entry) return
          loaded.delete(now.source.entry)
          if (!isFound(before.source)) loaded.add(before.source.entry)
        })
        // The files are the same, so only a hint tells other processes of the rollback.
        if (before.source?.entry === now.source?.entry) changed({ rolledBack: name })
        return listed(name)
      }),
    unload: name =>
      inTurn(async () => {
        const { source } = serving(name)
        const next = new Map(entries)
        next.delete(name)
        await swap(next, stays(name))
        await choose(({ loaded, off }) => {
          if (!source || !loaded.delete(source.entry)) off.add(name)
        })
        return { name }
      }),
    enable: (name, organisations) =>
      inTurn(async () => {
        serving(name)
        await choose(
          ({ only }) =>
            void (organisations === null ? only.delete(name) : only.set(name, organisations)),
        )
        return listed(name)
      }),
    isolate: (name, bounds) =>
      inTurn(async () => {
        await swap(new Map([...entries, [name, await renewed(name, bounds)]]), stays(name))
        await choose(
          ({ isolated }) =>
            void (bounds === null ? isolated.delete(name) : isolated.set(name, bounds)),
        )
        return listed(name)
      }),
    check: (path, { isolated } = {}) =>
      inTurn(async () => {
        const { plugin } = await importNow(sourceAt(path), isolated && resourceLimitsDefault)
        const others = [...entries.values()]
          .map(entry => entry.plugin)
          .filter(({ name }) => name !== plugin.name)
        try {
          check([...others, plugin])
        } catch (error) {
          throw refuse(whyOf(error), error)
        }
        return {
          name: plugin.name,
          version: plugin.version,
          replaces: entries.get(plugin.name)?.plugin.version ?? null,
        }
      }),
    /**
     * Applies what the folders and the operators' choices say now. A plugin that cannot be loaded
     * is reported and stays as it was.
     */
    reconcile: () =>
      inTurn(async () => {
        await choices.refresh()
        limit()
        isBehind = false
        const { sources, off } = sourcesNow()
        const { isolated } = choices.read()
        const changes: string[] = []
        const fresh = new Map<string, Entry>()
        const step = async (
          what: string,
          source: string,
          act: () => Promise<string | undefined>,
        ) => {
          try {
            const done = await act()
            if (done !== undefined) changes.push(done)
            failed.delete(source)
          } catch (error) {
            failed.set(source, whyOf(error))
            isBehind ||= hasCode(error, 'UNAVAILABLE')
            log('error', 'plugins.reconcile', { what, error })
          }
        }
        const isThere = ({ entry }: Source) => sources.some(one => one.entry === entry)
        for (const source of sources) {
          if (
            [...entries.values()].some(one => one.source?.entry === source.entry) ||
            off.includes(names.get(source.entry) ?? '')
          )
            continue
          await step(`load ${source.entry}`, source.entry, async () => {
            const crashed = crashes.refusal(source.entry)
            if (crashed?.name) names.set(source.entry, crashed.name)
            if (crashed) throw refuse(crashed.why)
            const entry = await importNow(source)
            const { name } = entry.plugin
            const other = entries.get(name)
            if (off.includes(name)) return undefined
            if (fresh.has(name) || (other && (!other.source || isThere(other.source))))
              throw refuse(
                `${name} is served from ` +
                  `${(fresh.get(name) ?? other)!.source?.entry ?? 'elsewhere'}.`,
              )
            fresh.set(name, other ? { ...entry, before: versionOf(other) } : entry)
            return undefined
          })
        }
        for (const [name, { source, stamp, isolated: bounds }] of entries) {
          if (!source || fresh.has(name)) continue
          if (off.includes(name) || !isThere(source)) {
            const next = new Map(entries)
            next.delete(name)
            await step(
              `unload ${name}`,
              source.entry,
              async () => (await swap(next, stays(name)), `unload ${name}`),
            )
          } else if (
            !existsSync(source.entry) ||
            stampOf(source) !== stamp ||
            JSON.stringify(bounds) !== JSON.stringify(isolated[name])
          )
            await step(
              `reload ${name}`,
              source.entry,
              async () => (
                await swap(new Map([...entries, [name, await renewed(name)]]), stays(name)),
                `reload ${name}`
              ),
            )
        }
        // Replaces entries that are gone, and adds the others.
        for (const [name, entry] of fresh)
          await step(
            `load ${name}`,
            entry.source!.entry,
            async () => (
              await swap(
                new Map([...entries, [name, entry]]),
                entries.has(name) ? stays(name) : `${name} was not loaded.`,
                entry.source!.entry,
              ),
              `load ${entry.source!.entry}`
            ),
          )
        return { changes }
      }),
  }
  return {
    ...pluginRegistry,
    /** Rolls back because another process did. */
    followBack: (name: string) => inTurn(() => goBack(name)),
    isBehind: () => isBehind,
    isLimited: () => limits.size > 0,
    isEnabled: (plugin: string, orgId: string | undefined): boolean =>
      !limits.has(plugin) || (orgId !== undefined && limits.get(plugin)!.has(orgId)),
    /**
     * The first set: of this program (its plugins must all serve), then what an operator added (a
     * broken one is told, and the rest serves).
     */
    async begin(given?: readonly Plugin[]): Promise<void> {
      await choices.refresh()
      limit()
      if (given) return adopt(new Map(given.map(plugin => [plugin.name, { plugin, stamp: '' }])))
      const { off } = choices.read()
      const first: Entry[] = await Promise.all(
        sourcesIn(builtInDir).map(async source => ({
          source,
          stamp: stampOf(source),
          plugin: await importOnce(source),
        })),
      )
      await adopt(
        new Map(
          first
            .filter(({ plugin }) => !off.includes(plugin.name))
            .map(entry => [entry.plugin.name, entry]),
        ),
      )
      for (const { plugin, source } of first) names.set(source!.entry, plugin.name)
      await pluginRegistry.reconcile()
    },
  }
}

export type RegistryService = ReturnType<typeof createPluginRegistry>
