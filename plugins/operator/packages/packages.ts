// Packages from npm: each version in a folder of its own, so that going back is a pointer. Install
// scripts are not run.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { fault } from '#kernel'

/** How long npm may take, in milliseconds. */
const installMsMax = 300_000
/** A name with a version or a tag, or a tarball; nothing that npm would take for an option. */
const specPattern = /^(?!-)[\w@./:+~^-]{1,500}$/

export type Installed = {
  readonly name: string
  readonly version: string
  readonly integrity: string
  /** The package itself. */
  readonly path: string
}
export const refuse = (why: string, cause?: unknown) => fault('PLUGIN_REFUSED', { why }, { cause })

const npm = (args: readonly string[], cwd: string) =>
  new Promise<void>((done, failed) => {
    execFile(
      'npm',
      args,
      { cwd, timeout: installMsMax, env: { ...process.env, npm_config_update_notifier: 'false' } },
      (error, _, said) =>
        error
          ? failed(
              refuse(
                `npm could not install it: ${
                  said
                    .trim()
                    .split('\n')
                    .findLast(line => line.includes('error')) ?? error.message
                }`,
                error,
              ),
            )
          : done(),
    )
  })

/** Reads what npm resolved from its own lock file. */
function resolved(folder: string): Installed {
  const lock = JSON.parse(readFileSync(join(folder, 'package-lock.json'), 'utf8')) as {
    packages: Record<
      string,
      { dependencies?: Record<string, string>; version?: string; integrity?: string }
    >
  }
  const name = Object.keys(lock.packages['']?.dependencies ?? {})[0]
  const { version, integrity } = lock.packages[`node_modules/${name}`] ?? {}
  if (name === undefined || version === undefined) throw refuse('npm installed no package')
  return { name, version, integrity: integrity ?? '', path: join(folder, 'node_modules', name) }
}

/** The packages below one folder. */
export function packagesIn(home: string) {
  const folderOf = (name: string) => join(home, name.replace('/', '+'))
  return {
    /**
     * `accept` may refuse what was installed before it takes its place; what was there stays then.
     */
    async install(
      spec: string,
      accept: (staged: Installed) => void | Promise<void> = () => undefined,
    ): Promise<Installed> {
      if (!specPattern.test(spec))
        throw refuse(`"${spec.slice(0, 100)}" is no package, version or tarball`)
      mkdirSync(home, { recursive: true, mode: 0o700 })
      const staging = mkdtempSync(join(home, '.new-'))
      try {
        writeFileSync(join(staging, 'package.json'), '{ "private": true }')
        // The platform itself is given by whoever loads the package: peers are not installed.
        await npm(
          [
            'install',
            existsSync(spec) ? resolve(spec) : spec,
            '--install-links',
            '--ignore-scripts',
            '--omit=dev',
            '--omit=peer',
            '--legacy-peer-deps',
            '--no-audit',
            '--no-fund',
            '--loglevel=error',
          ],
          staging,
        )
        const found = resolved(staging)
        const digest = createHash('sha256').update(found.integrity).digest('hex')
        const at = join(folderOf(found.name), `${found.version}-${digest.slice(0, 8)}`)
        await accept(found)
        rmSync(at, { recursive: true, force: true })
        mkdirSync(join(at, '..'), { recursive: true })
        renameSync(staging, at)
        return { ...found, path: join(at, relative(staging, found.path)) }
      } finally {
        rmSync(staging, { recursive: true, force: true })
      }
    },
    /** Every version of it. */
    erase: (name: string) => rmSync(folderOf(name), { recursive: true, force: true }),
  }
}
