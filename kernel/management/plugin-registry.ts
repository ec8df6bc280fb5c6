// The plugin registry: which plugins serve, from where, and in which generation. It loads, reloads,
// unloads and rolls back, and stores the operator's choices.
import type { Log } from '#ports/adapter.ts'
import type { Source } from '../module-loader.ts'
import type { PluginStatus, PluginRegistry } from '../kernel-ports.ts'
import type { Plugin } from '../plugin.ts'
import { resourceLimitsDefault } from '../isolation/manifest.ts'
import type { Editable } from './desired-state.ts'
import { createOrganisations } from './organisations.ts'
import { createReconciliation } from './reconciliation.ts'
import {
  createServedPlugins,
  importBuiltIn,
  refuse,
  versionOf,
  whyOf,
  type Entry,
  type Parts,
} from './served-plugins.ts'
import { sourceAt, sourcesOf } from '../loading/sources.ts'

type RegistryParts = Parts & {
  readonly pluginsDir: string | undefined
  readonly log: Log
  /** Tells the other processes that this one changed something. */
  readonly changed: (what?: { readonly rolledBack: string }) => void
}

/** A row of the list that has no generation. */
const idle = (state: 'off' | 'failed', name: string, source = '', detail = ''): PluginStatus => ({
  name,
  version: '',
  state,
  generation: 0,
  source,
  previous: null,
  organisations: null,
  isolated: null,
  detail,
})

export function createPluginRegistry({ pluginsDir, log, changed, ...parts }: RegistryParts) {
  const { choices, kernel, crashes } = parts
  const served = createServedPlugins(parts)
  const organisations = createOrganisations(choices)
  /** By entry: why it could not be had. */
  const failed = new Map<string, string>()
  let turn: Promise<unknown> = Promise.resolve()

  /** Makes one change at a time, so that each change sees the result of the one before. */
  const inTurn = <T>(act: () => Promise<T>): Promise<T> => {
    const mine = turn.then(act)
    turn = mine.catch(() => undefined)
    return mine
  }
  const sourcesNow = () => {
    const { loaded, off } = choices.read()
    return { off, sources: sourcesOf(loaded, pluginsDir) }
  }
  const reconciliation = createReconciliation({
    choices,
    crashes,
    served,
    failed,
    sourcesNow,
    log,
  })
  /** Stores the operator's choice, then tells the other processes. */
  const choose = async (edit: (choices: Editable) => void = () => undefined): Promise<void> => {
    await choices.edit(edit)
    organisations.refresh()
    changed()
  }
  const isFound = ({ entry }: Source) => sourcesNow().sources.some(one => one.entry === entry)
  const listed = (name: string): PluginStatus => {
    const { plugin, source, before, isolated = null } = served.get(name)
    return {
      name,
      version: plugin.version,
      state: 'serving',
      generation: served.generationOf(name) ?? 0,
      source: source?.entry ?? '',
      previous: before?.plugin.version ?? null,
      organisations: organisations.of(name),
      isolated,
      detail: '',
    }
  }
  /** A loaded plugin that does not serve, by its source or by the name that it once told. */
  const brokenAs = (what: string): string | undefined =>
    choices
      .read()
      .loaded.filter(entry => failed.has(entry) && !served.hasSource({ entry }))
      .find(entry => [entry, served.names.get(entry)].includes(what))
  const pluginRegistry: PluginRegistry = {
    list: () => [
      ...[...served.entries().keys()].sort().map(listed),
      ...choices.read().off.map(name => idle('off', name)),
      ...[...failed].map(([source, detail]) =>
        idle('failed', served.names.get(source) ?? '', source, detail),
      ),
    ],
    load: (what, { replace = false, isolated } = {}) =>
      inTurn(async () => {
        const isName = choices.read().off.includes(what)
        let entry: Entry | undefined
        for (const source of isName ? sourcesNow().sources : [sourceAt(what)]) {
          if (served.hasSource(source)) continue
          if (!isName) crashes.forget(source.entry)
          const found = await served.importFrom(source, isolated)
          if (!isName || found.plugin.name === what) entry = found
        }
        if (!entry) throw refuse(`${what} serves already; reload it.`)
        const { name } = entry.plugin
        const other = served.entries().get(name)
        if (other && !replace)
          throw refuse(
            `${name} is served from ${other.source?.entry ?? 'elsewhere'}; unload it first.`,
          )
        await served.swapIn(
          name,
          other ? { ...entry, before: versionOf(other) } : entry,
          other ? served.stays(name) : `${name} was not loaded.`,
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
        await served.reload(name)
        if (choices.shared) await choose()
        return listed(name)
      }),
    rollback: name =>
      inTurn(async () => {
        const { now, before } = await served.goBack(name)
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
        const broken = served.entries().has(name) ? undefined : brokenAs(name)
        const entry = broken ?? served.get(name).source?.entry
        if (!broken) await served.unload(name)
        await choose(({ loaded, off }) => {
          if (!entry || !loaded.delete(entry)) off.add(name)
        })
        if (broken) failed.delete(broken)
        return { name }
      }),
    enable: (name, only) =>
      inTurn(async () => {
        served.get(name)
        await choose(
          chosen => void (only === null ? chosen.only.delete(name) : chosen.only.set(name, only)),
        )
        return listed(name)
      }),
    isolate: (name, bounds) =>
      inTurn(async () => {
        await served.reload(name, bounds)
        await choose(
          ({ isolated }) =>
            void (bounds === null ? isolated.delete(name) : isolated.set(name, bounds)),
        )
        return listed(name)
      }),
    check: (path, { isolated } = {}) =>
      inTurn(async () => {
        const { plugin } = await served.importFrom(
          sourceAt(path),
          isolated && resourceLimitsDefault,
        )
        const others = [...served.entries().values()]
          .map(entry => entry.plugin)
          .filter(({ name }) => name !== plugin.name)
        try {
          kernel.check([...others, plugin])
        } catch (error) {
          throw refuse(whyOf(error), error)
        }
        return {
          name: plugin.name,
          version: plugin.version,
          replaces: served.entries().get(plugin.name)?.plugin.version ?? null,
        }
      }),
    /**
     * Applies what the folders and the operators' choices say now. A plugin that cannot be loaded
     * is reported and stays as it was.
     */
    reconcile: () =>
      inTurn(async () => {
        await choices.refresh()
        organisations.refresh()
        return reconciliation.reconcile()
      }),
  }
  return {
    ...pluginRegistry,
    /** Rolls back because another process did. */
    followBack: (name: string) => inTurn(() => served.goBack(name)),
    isBehind: reconciliation.isBehind,
    isLimited: organisations.isLimited,
    isEnabled: organisations.isEnabled,
    /**
     * Loads the first set. This program's plugins must all serve. A broken plugin that an operator
     * added is reported, and the others serve.
     */
    async begin(given?: readonly Plugin[]): Promise<void> {
      await choices.refresh()
      organisations.refresh()
      if (given) return served.begin(given.map(plugin => ({ plugin, stamp: '' })))
      const { off } = choices.read()
      const first = await importBuiltIn()
      await served.begin(
        first.filter(({ plugin }) => !off.includes(plugin.name)),
        'on first use',
      )
      for (const { plugin, source } of first) served.names.set(source!.entry, plugin.name)
      await pluginRegistry.reconcile()
    },
  }
}

export type RegistryService = ReturnType<typeof createPluginRegistry>
