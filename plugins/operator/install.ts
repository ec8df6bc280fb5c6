// Plugins from npm: each version in a folder of its own, so that going back is a pointer. Install scripts are not run.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fault, type Roster } from '#kernel'
import type { Clock } from '#ports/clock.ts'

/** How long npm may take, in milliseconds. */
const installMsMax = 300_000
/** A name with a version or a tag, or a tarball; nothing that npm would take for an option. */
const specPattern = /^(?!-)[\w@./:+~^-]{1,500}$/

type Installed = { readonly name: string; readonly version: string; readonly integrity: string; readonly path: string }
const refuse = (why: string, cause?: unknown) => fault('PLUGIN_REFUSED', { why }, { cause })

const npm = (args: readonly string[], cwd: string) => new Promise<void>((done, failed) => {
  execFile('npm', args, { cwd, timeout: installMsMax, env: { ...process.env, npm_config_update_notifier: 'false' } }, (error, _, said) => (error ? failed(refuse(`npm could not install it: ${said.trim().split('\n').findLast(line => line.includes('error')) ?? error.message}`, error)) : done()))
})

/** Reads what npm resolved from its own lock file. */
function resolved(folder: string): Installed {
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as { packages: Record<string, { dependencies?: Record<string, string>; version?: string; integrity?: string }> }
  const name = Object.keys(lock.packages['']?.dependencies ?? {})[0]
  const { version, integrity } = lock.packages[`node_modules/${name}`] ?? {}
  if (name === undefined || version === undefined) throw refuse('npm installed no package')
  return { name, version, integrity: integrity ?? '', path: join(folder, 'node_modules', name) }
}

export function createInstaller({ plugins, clock, config }: { plugins: Roster; clock: Clock; config: { data_dir: string } }) {
  const home = join(resolve(config.data_dir), 'packages')
  const folderFor = ({ name, version, integrity }: Omit<Installed, 'path'>) => join(home, name.replace('/', '+'), `${version}-${createHash('sha256').update(integrity).digest('hex').slice(0, 8)}`)
  return {
    /** Installs and serves it, in place of the version that serves now. */
    async add(spec: string) {
      if (!specPattern.test(spec)) throw refuse(`"${spec.slice(0, 100)}" is no package, version or tarball`)
      const folder = join(home, `.new-${clock.id()}`), spec_ = existsSync(spec) ? resolve(spec) : spec
      mkdirSync(folder, { recursive: true, mode: 0o700 })
      try {
        writeFileSync(join(folder, 'package.json'), '{ "private": true }')
        // The platform itself is given by whoever serves the plugin: peers are not installed.
        await npm(['install', spec_, '--ignore-scripts', '--omit=dev', '--omit=peer', '--legacy-peer-deps', '--no-audit', '--no-fund', '--loglevel=error'], folder)
        const found = resolved(folder), at = folderFor(found)
        rmSync(at, { recursive: true, force: true })
        mkdirSync(join(at, '..'), { recursive: true })
        renameSync(folder, at)
        const listed = await plugins.load(join(at, 'node_modules', found.name), { replace: true })
        return { ...listed, package: found.name, integrity: found.integrity }
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    },
    /** Takes it out and its folders away. */
    async remove(name: string) {
      const source = plugins.list().find(one => one.name === name)?.source ?? ''
      if (!source.startsWith(home)) throw refuse(`${name} was not added from a package; unload it`)
      await plugins.unload(name)
      rmSync(join(home, source.slice(home.length + 1).split('/')[0]!), { recursive: true, force: true })
      return { name }
    },
  }
}
export type Installer = ReturnType<typeof createInstaller>
