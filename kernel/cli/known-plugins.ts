// The plugins that the command line knows, without a kernel that serves them.
import { isolationFor, openClock } from '../boot.ts'
import { checkDeclared } from '../loading/declared.ts'
import { loadPlugins } from '../loading/sources.ts'
import { readDesiredState } from '../management/desired-state.ts'
import { createModuleLoader, importOnce } from '../module-loader.ts'
import type { Plugin } from '../plugin.ts'
import { readSettings } from '../settings/settings.ts'

/**
 * Describes plugins from elsewhere. If operators isolated any plugin, each one is described in a
 * thread, so that no foreign code runs in this process.
 */
async function describer(isolated: object): Promise<(entry: string) => Promise<Plugin>> {
  if (Object.keys(isolated).length === 0)
    return async entry => checkDeclared(await importOnce({ entry }))
  const settings = readSettings(process.env)
  const { describe } = isolationFor(settings, await openClock(process.env, settings))
  return async entry => (await describe({ entry })) as unknown as Plugin
}

/** This program's plugins, and the plugins from elsewhere that can be read. */
export async function allPlugins(dataDir: string): Promise<Plugin[]> {
  const moduleLoader = createModuleLoader('commands')
  try {
    const { loaded, isolated } = readDesiredState(dataDir)
    const describe = await describer(isolated)
    const others = await Promise.all(loaded.map(entry => describe(entry).catch(() => undefined)))
    return [...(await loadPlugins()), ...others.filter(plugin => plugin !== undefined)]
  } finally {
    moduleLoader.close()
  }
}
