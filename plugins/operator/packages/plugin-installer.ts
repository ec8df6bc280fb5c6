// Plugins from packages: added to what serves, kept for the processes beside this one, and taken
// out with their folders.
import { isAbsolute, join, relative, resolve, sep } from 'node:path'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import type { PluginFiles, PluginRegistry } from '#kernel'
import { packagesIn, refuse } from './packages.ts'
import { createPackageStore } from './package-store.ts'

type Deps = {
  readonly plugins: PluginRegistry
  readonly storage: ScopedStorage
  readonly clock: Pick<Clock, 'id' | 'now'>
  readonly config: { readonly data_dir: string; readonly auth_secret?: string }
}

export function createInstaller({ plugins, storage, clock, config }: Deps) {
  const home = join(resolve(config.data_dir), 'packages')
  const packages = packagesIn(home)
  const packageStore = createPackageStore({ storage, clock, config })
  /** Of what lies in a package: its folder for one version, relative to all of them. */
  const folderOf = (path: string): string | undefined => {
    const within = relative(home, path)
    const [name, version] = within.split(sep)
    return within.startsWith('..') || isAbsolute(within) || !version
      ? undefined
      : `${name}/${version}`
  }
  return {
    /** Installs and serves it, in place of the version that serves now. */
    async add(spec: string) {
      const { name, integrity, path } = await packages.install(spec)
      // Before it is chosen: whoever follows the choice finds it.
      await packageStore.keep(home, folderOf(path)!)
      return { ...(await plugins.load(path, { replace: true })), package: name, integrity }
    },
    /** Takes it out and its folders away. */
    async remove(name: string) {
      const folder = folderOf(plugins.list().find(one => one.name === name)?.source ?? '')
      if (folder === undefined) throw refuse(`${name} was not added from a package; unload it`)
      await plugins.unload(name)
      packages.erase(folder.split('/')[0]!)
      await packageStore.forget(folder)
      return { name }
    },
    files: {
      fetchFile: async entry => {
        const folder = folderOf(entry)
        return folder !== undefined && packageStore.fetchPackage(home, folder)
      },
    } satisfies PluginFiles,
  }
}
export type Installer = ReturnType<typeof createInstaller>
