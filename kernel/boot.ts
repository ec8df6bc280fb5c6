// Boots a kernel with its plugins from the environment. `start`, the commands and the tests all use
// it.
import { existsSync } from 'node:fs'
import { fault } from '#contracts/faults.ts'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import { CopyMark, type StorageEngine } from '#ports/storage.ts'
import { foldersOf } from './adapters.ts'
import { bindAdapters } from './engines.ts'
import { createDesiredState } from './management/desired-state.ts'
import { createModuleLoader } from './module-loader.ts'
import type { PluginRegistry } from './kernel-ports.ts'
import { createKernel, type Kernel } from './kernel.ts'
import { createCrashes, type Crashes } from './loading/crashes.ts'
import { createLog } from './telemetry/log.ts'
import { createBroadcast } from './management/broadcast.ts'
import { followOthers } from './management/follow-others.ts'
import type { Plugin } from './plugin.ts'
import { createPluginRegistry } from './management/plugin-registry.ts'
import { readSettings, type Environment, type Settings } from './settings/settings.ts'
import { createIsolation } from './isolation/proxy-plugin.ts'

export type Booted = {
  readonly kernel: Kernel
  readonly pluginRegistry: PluginRegistry
  readonly settings: Settings
  readonly engine: <T>(port: string) => T
  readonly log: Log
  /**
   * Records an uncaught error against the plugin whose code threw it, and answers the plugin's
   * name.
   */
  readonly blame: (error: unknown) => string | undefined
}
type Options = {
  readonly env: Environment
  /** Engines that replace those of the settings. */
  readonly given?: Readonly<Record<string, unknown>>
  readonly plugins?: readonly Plugin[]
  readonly strict?: boolean
  /** True for the one kernel of a process: it records uncaught errors against plugins. */
  readonly guarded?: true
  readonly write?: (line: string) => void
}

/**
 * Refuses a storage with half a copy, whose documents would pass for all documents. UNAVAILABLE
 * says how to go on.
 */
async function refuseHalfCopy(storage: StorageEngine): Promise<void> {
  await storage.define(CopyMark)
  const mark = await storage.get(CopyMark, 'copy')
  if (mark)
    throw fault('UNAVAILABLE', {
      what: 'The storage',
      why:
        `it is an unfinished copy of ${mark.from}; the same "storage copy" again goes on ` +
        'with it',
    })
}

/**
 * Holds what nobody caught against the plugin that threw it. It only looks: what becomes of the
 * process is for others to say.
 */
const blameServing =
  ({
    crashes,
    pluginRegistry,
    log,
  }: {
    crashes: Crashes
    pluginRegistry: PluginRegistry
    log: Log
  }) =>
  (error: unknown): string | undefined => {
    try {
      return crashes.record(
        error,
        pluginRegistry.list().map(({ source: entry, name }) => ({ entry, name })),
      )
    } catch (failure) {
      log('warn', 'plugin.crash_record', { error: failure })
      return undefined
    }
  }

function settingsFrom(env: Environment): Settings {
  const settings = readSettings(env)
  if (settings.PLUGINS_DIR !== undefined && !existsSync(settings.PLUGINS_DIR))
    throw fault('INVALID_FIELD', { field: 'PLUGINS_DIR', why: 'is no folder' })
  return settings
}

/** It comes before the other ports, for the log's lines are dated by it too. */
export async function openClock(env: Environment, settings: Settings): Promise<Clock> {
  const silent: Log = () => undefined
  const engines = await bindAdapters({ env, settings, log: silent, only: ['clock'] })
  return engines.engine<Clock>('clock')
}

export const isolationFor = (settings: Settings, clock: Clock) =>
  createIsolation({
    clock,
    clockUrl: settings.CLOCK_URL,
    folders: foldersOf(settings),
    stepMs: settings.PLUGIN_STEP_MS,
  })

const crashesFor = (settings: Settings, clock: Clock, log: Log) =>
  createCrashes({
    dataDir: settings.DATA_DIR,
    now: clock.now,
    log,
    endsMax: settings.PLUGIN_CRASHES_MAX,
    withinMs: settings.PLUGIN_CRASH_HOURS * 3_600_000,
  })

export async function boot(options: Options): Promise<Booted> {
  const { env, given = {}, plugins, strict = false, guarded } = options
  const { write = line => process.stderr.write(line) } = options
  const settings = settingsFrom(env)
  const clock = (given['clock'] as Clock | undefined) ?? (await openClock(env, settings))
  const log = createLog({ level: settings.LOG_LEVEL, now: () => clock.now(), write })
  const moduleLoader = createModuleLoader(clock.id())
  const isolation = isolationFor(settings, clock)
  const engines = await bindAdapters({ env, settings, log, given: { ...given, clock } }).catch(
    (error: unknown) => {
      moduleLoader.close()
      throw error
    },
  )
  const storage = engines.engine<StorageEngine>('storage')
  const choices = createDesiredState({ dataDir: settings.DATA_DIR, storage })
  const eventlog = engines.engine<EventlogEngine>('eventlog')
  const peers = createBroadcast({ eventlog, clock, log, exclusive: storage.exclusive })
  const kernel = createKernel({
    env: { ...env, DATA_DIR: settings.DATA_DIR },
    settings,
    engines,
    log,
    strict,
    peers,
    pluginRegistry: () => pluginRegistry,
  })
  const crashes = crashesFor(settings, clock, log)
  const pluginRegistry = createPluginRegistry({
    choices,
    crashes,
    changed: what => peers.publish('plugins', what ?? null),
    pluginsDir: settings.PLUGINS_DIR,
    moduleLoader,
    isolation,
    log,
    kernel,
  })
  const blame = blameServing({ crashes, pluginRegistry, log })
  if (guarded) process.on('uncaughtExceptionMonitor', blame)
  const following = new AbortController()
  const stop = () => {
    following.abort()
    peers.close()
    return kernel.stop().finally(() => {
      moduleLoader.close()
      process.off('uncaughtExceptionMonitor', blame)
    })
  }
  try {
    await refuseHalfCopy(storage)
    await pluginRegistry.begin(plugins)
    if (choices.shared)
      followOthers({ pluginRegistry, choices, peers, clock, log }, following.signal)
  } catch (error) {
    await stop()
    throw error
  }
  return {
    kernel: { ...kernel, stop },
    pluginRegistry,
    settings,
    engine: engines.engine,
    log,
    blame,
  }
}
