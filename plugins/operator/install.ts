// Plugins from packages: added to what serves, and taken out with their folders.
import { join, resolve } from 'node:path'
import type { Roster } from '#kernel'
import { packagesIn, refuse } from './packages.ts'

export function createInstaller({ plugins, config }: { plugins: Roster; config: { data_dir: string } }) {
  const home = join(resolve(config.data_dir), 'packages'), packages = packagesIn(home)
  return {
    /** Installs and serves it, in place of the version that serves now. */
    async add(spec: string) {
      const { name, integrity, path } = await packages.install(spec)
      return { ...(await plugins.load(path, { replace: true })), package: name, integrity }
    },
    /** Takes it out and its folders away. */
    async remove(name: string) {
      const source = plugins.list().find(one => one.name === name)?.source ?? ''
      if (!source.startsWith(home)) throw refuse(`${name} was not added from a package; unload it`)
      await plugins.unload(name)
      packages.erase(source.slice(home.length + 1).split('/')[0]!)
      return { name }
    },
  }
}
export type Installer = ReturnType<typeof createInstaller>
