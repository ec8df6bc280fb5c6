// From the environment to a kernel with its plugins: what `start`, the commands and the tests do alike.
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import { bindAdapters } from './adapters.ts'
import { createKernel, type Kernel } from './kernel.ts'
import { createLog } from './log.ts'
import { loadPlugins } from './sources.ts'
import type { Plugin } from './plugin.ts'
import { readSettings, type Environment, type Settings } from './settings.ts'

export type Booted = { readonly kernel: Kernel; readonly settings: Settings; readonly engine: <T>(port: string) => T; readonly log: Log }
type Options = { readonly env: Environment; /** Engines that stand in for what the settings name. */ readonly given?: Readonly<Record<string, unknown>>; readonly plugins?: readonly Plugin[]; readonly strict?: boolean; readonly write?: (line: string) => void }

export async function boot({ env, given = {}, plugins, strict = false, write = line => process.stderr.write(line) }: Options): Promise<Booted> {
  const settings = readSettings(env)
  // The clock comes first, for the log's lines are dated by it too.
  const silent: Log = () => undefined
  const clock = given['clock'] ?? (await bindAdapters({ env, settings, log: silent, only: ['clock'] })).engine<Clock>('clock')
  const log = createLog({ level: settings.LOG_LEVEL, now: () => (clock as Clock).now(), write })
  const engines = await bindAdapters({ env, settings, log, given: { ...given, clock } })
  const kernel = createKernel({ env: { ...env, DATA_DIR: settings.DATA_DIR }, settings, engines, log, strict })
  try {
    await kernel.become(plugins ?? (await loadPlugins()))
  } catch (error) {
    await kernel.stop()
    throw error
  }
  return { kernel, settings, engine: engines.engine, log }
}
