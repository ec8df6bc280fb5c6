// Boots a kernel with its plugins from the environment. `start`, the commands and the tests all use
// it.
import { existsSync } from 'node:fs'
import { fault } from '#contracts/faults.ts'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import { CopyMark, type StorageEngine } from '#ports/storage.ts'
import { bindAdapters, foldersOf } from './adapters.ts'
import { createDesiredState } from './management/desired-state.ts'
import { createModuleLoader } from './module-loader.ts'
import type { PluginRegistry } from './kernel-ports.ts'
import { createKernel, type Kernel } from './kernel.ts'
import { createCrashes } from './loading/crashes.ts'
import { createLog } from './telemetry/log.ts'
import { createBroadcast } from './management/broadcast.ts'
import type { Plugin } from './plugin.ts'
import { createPluginRegistry } from './management/plugin-registry.ts'
import { readSettings, type Environment, type Settings } from './settings.ts'
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

/** Milliseconds between two reads of other processes' choices, in case a hint is lost. */
const choicesMs = 15_000

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

export async function boot({
  env,
  given = {},
  plugins,
  strict = false,
  guarded,
  write = line => process.stderr.write(line),
}: Options): Promise<Booted> {
  const settings = readSettings(env)
  if (settings.PLUGINS_DIR !== undefined && !existsSync(settings.PLUGINS_DIR))
    throw fault('INVALID_FIELD', { field: 'PLUGINS_DIR', why: 'is no folder' })
  // The clock opens first, because it dates the lines of the log.
  const silent: Log = () => undefined
  const clock = (given['clock'] ??
    (await bindAdapters({ env, settings, log: silent, only: ['clock'] })).engine<Clock>(
      'clock',
    )) as Clock
  const log = createLog({ level: settings.LOG_LEVEL, now: () => clock.now(), write })
  const generations = createModuleLoader(clock.id())
  const threads = createIsolation({
    clock,
    clockUrl: settings.CLOCK_URL,
    folders: foldersOf(settings),
    stepMs: settings.PLUGIN_STEP_MS,
  })
  const engines = await bindAdapters({ env, settings, log, given: { ...given, clock } }).catch(
    (error: unknown) => {
      generations.close()
      throw error
    },
  )
  const storage = engines.engine<StorageEngine>('storage')
  const choices = createDesiredState({ dataDir: settings.DATA_DIR, storage })
  const peers = createBroadcast({
    eventlog: engines.engine<EventlogEngine>('eventlog'),
    clock,
    log,
    exclusive: storage.exclusive,
  })
  const kernel = createKernel({
    env: { ...env, DATA_DIR: settings.DATA_DIR },
    settings,
    engines,
    log,
    strict,
    peers,
    pluginRegistry: () => pluginRegistry,
  })
  const crashes = createCrashes({
    dataDir: settings.DATA_DIR,
    now: clock.now,
    log,
    endsMax: settings.PLUGIN_CRASHES_MAX,
    withinMs: settings.PLUGIN_CRASH_HOURS * 3_600_000,
  })
  const pluginRegistry = createPluginRegistry({
    choices,
    crashes,
    changed: what => peers.publish('plugins', what ?? null),
    pluginsDir: settings.PLUGINS_DIR,
    generations,
    threads,
    log,
    applyPlugins: kernel.applyPlugins,
    within: kernel.within,
    refused: kernel.refused,
    check: kernel.check,
    fetchFiles: kernel.fetchFiles,
    generationOf: name => kernel.host.plugins().find(plugin => plugin.name === name)?.generation,
  })
  // Finds the culprit only; the caller decides what becomes of the process.
  const blame = (error: unknown): string | undefined => {
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
  if (guarded) process.on('uncaughtExceptionMonitor', blame)
  const following = new AbortController()
  const stop = () => {
    following.abort()
    peers.close()
    return kernel.stop().finally(() => {
      generations.close()
      process.off('uncaughtExceptionMonitor', blame)
    })
  }
  const followOthers = () => {
    const failed = (error: unknown) => log('error', 'plugins.reconciled', { error })
    const reconcile = () =>
      void pluginRegistry
        .reconcile()
        .then(
          ({ changes }) => changes.length > 0 && log('info', 'plugins.reconciled', { changes }),
          failed,
        )
    peers.subscribe('plugins', what =>
      what === null
        ? reconcile()
        : void pluginRegistry.followBack((what as { rolledBack: string }).rolledBack).catch(failed),
    )
    // Looks for choices of other processes, because a hint may be lost.
    void (async () => {
      for (;;) {
        await clock.sleep(choicesMs, following.signal)
        if ((await choices.refresh().catch(() => false)) || pluginRegistry.isBehind()) reconcile()
      }
    })().catch(() => undefined)
  }
  try {
    await refuseHalfCopy(storage)
    await pluginRegistry.begin(plugins)
    if (choices.shared) followOthers()
  } catch (error) {
    await stop()
    throw error
  }
  return {
    kernel: { ...kernel, stop },
    pluginRegistry: pluginRegistry,
    settings,
    engine: engines.engine,
    log,
    blame,
  }
}
