// Makes the plugins that serve agree with what the folders and the operators' choices say now.
import { existsSync } from 'node:fs'
import { hasCode } from '#contracts/faults.ts'
import type { Log } from '#ports/adapter.ts'
import type { Crashes } from '../loading/crashes.ts'
import { stampOf } from '../loading/sources.ts'
import type { Source } from '../module-loader.ts'
import type { DesiredStateStore } from './desired-state.ts'
import { refuse, versionOf, whyOf, type Entry, type ServedPlugins } from './served-plugins.ts'

type Parts = {
  readonly choices: DesiredStateStore
  readonly crashes: Crashes
  readonly served: ServedPlugins
  /** By entry: why it could not be had. Each pass writes here what failed. */
  readonly failed: Map<string, string>
  readonly sourcesNow: () => {
    readonly off: readonly string[]
    readonly sources: readonly Source[]
  }
  readonly log: Log
}

export function createReconciliation({ choices, crashes, served, failed, sourcesNow, log }: Parts) {
  /** A source was unavailable while this process followed the others. It will look again. */
  let isBehind = false
  return {
    isBehind: () => isBehind,
    /** A plugin that cannot be loaded is reported and stays as it was. */
    async reconcile(): Promise<{ readonly changes: readonly string[] }> {
      isBehind = false
      const { sources, off } = sourcesNow()
      const { isolated } = choices.read()
      const changes: string[] = []
      const fresh = new Map<string, Entry>()
      const step = async (what: string, source: string, act: () => Promise<string | undefined>) => {
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
      const importNew = async (source: Source) => {
        const crashed = crashes.refusal(source.entry)
        if (crashed?.name) served.names.set(source.entry, crashed.name)
        if (crashed) throw refuse(crashed.why)
        const entry = await served.importFrom(source)
        const { name } = entry.plugin
        if (off.includes(name)) return undefined
        const other = served.entries().get(name)
        const holder = fresh.get(name) ?? other
        if (fresh.has(name) || (other && (!other.source || isThere(other.source))))
          throw refuse(`${name} is served from ${holder!.source?.entry ?? 'elsewhere'}.`)
        fresh.set(name, other ? { ...entry, before: versionOf(other) } : entry)
        return undefined
      }
      const unload = (name: string) => served.unload(name).then(() => `unload ${name}`)
      const reload = (name: string) => served.reload(name).then(() => `reload ${name}`)
      const swapIn = async (name: string, entry: Entry) => {
        const isKnown = served.entries().has(name)
        const sentence = isKnown ? served.stays(name) : `${name} was not loaded.`
        await served.swapIn(name, entry, sentence, entry.source!.entry)
        return `load ${entry.source!.entry}`
      }
      for (const source of sources) {
        const isOff = off.includes(served.names.get(source.entry) ?? '')
        if (served.hasSource(source) || isOff) continue
        await step(`load ${source.entry}`, source.entry, () => importNew(source))
      }
      for (const [name, { source, stamp, isolated: bounds }] of served.entries()) {
        if (!source || fresh.has(name)) continue
        if (off.includes(name) || !isThere(source))
          await step(`unload ${name}`, source.entry, () => unload(name))
        else if (
          !existsSync(source.entry) ||
          stampOf(source) !== stamp ||
          JSON.stringify(bounds) !== JSON.stringify(isolated[name])
        )
          await step(`reload ${name}`, source.entry, () => reload(name))
      }
      // Replaces entries that are gone, and adds the others.
      for (const [name, entry] of fresh)
        await step(`load ${name}`, entry.source!.entry, () => swapIn(name, entry))
      return { changes }
    },
  }
}
