// What a partner does with npm: runs it in a folder, packs it, and installs the platform.
import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

export const repository = resolve(import.meta.dirname, '../..')
/** npm, without what it says about itself. */
export const quiet = {
  npm_config_update_notifier: 'false',
  npm_config_fund: 'false',
  npm_config_audit: 'false',
}
export const run = (command: string, args: readonly string[], cwd: string) =>
  promisify(execFile)(command, args, { cwd, env: { ...process.env, ...quiet }, maxBuffer: 1 << 24 })
/**
 * Packing the platform makes dist/ anew: test files that run side by side take turns. A turn that
 * is older than this is over, in milliseconds.
 */
const turnMsMax = 300_000
async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const turn = join(repository, 'node_modules/.packing')
  for (;;) {
    try {
      mkdirSync(turn)
      break
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      if (
        Date.now() - (statSync(turn, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) >
        turnMsMax
      )
        rmSync(turn, { recursive: true, force: true })
      await pause(50)
    }
  }
  try {
    return await work()
  } finally {
    rmSync(turn, { recursive: true, force: true })
  }
}
/** Packs a folder into another; answers the tarball's path, as npm names it last. */
export const pack = async (from: string, into: string): Promise<string> =>
  join(
    into,
    (await run('npm', ['pack', '--pack-destination', into, '--loglevel=error'], from)).stdout
      .trim()
      .split('\n')
      .at(-1)!,
  )

const parts = [
  'kernel',
  'ports',
  'adapters',
  'plugins',
  'contracts',
  'test',
  'docs',
  'package.json',
  'tsconfig.json',
  'tsconfig.build.json',
  'README.md',
]
/** What a test makes for a while, where its imports resolve. */
const made = join(repository, 'test/examples/made/')
/** Another one when a file that is packed, or that makes what is packed, was touched. */
function stateOf(): string {
  const files = parts
    .map(part => join(repository, part))
    .flatMap(path =>
      statSync(path).isFile()
        ? [path]
        : globSync('**/*.{ts,mjs,js,json,md}', {
            cwd: path,
            exclude: name => name === 'node_modules',
          }).map(name => join(path, name)),
    )
    .filter(file => !file.startsWith(made))
    .sort()
  return createHash('sha256')
    .update(
      files
        .map(file => {
          const { size, mtimeMs } = statSync(file)
          return `${file} ${size} ${mtimeMs}`
        })
        .join('\n'),
    )
    .digest('hex')
}
const kept = join(repository, 'node_modules/.cache/agent-platform-packed')
/** What takes a while is made once for all that ask for the same state of the sources. */
async function once(what: string, make: (folder: string) => Promise<void>): Promise<string> {
  const own = join(kept, stateOf())
  const folder = join(own, what)
  if (existsSync(folder)) return folder
  if (!existsSync(own)) rmSync(kept, { recursive: true, force: true })
  rmSync(`${folder}.new`, { recursive: true, force: true })
  mkdirSync(`${folder}.new`, { recursive: true })
  await make(`${folder}.new`)
  renameSync(`${folder}.new`, folder)
  return folder
}
const packed = async (): Promise<string> => {
  const folder = await once('packed', async into => void (await pack(repository, into)))
  return join(folder, readdirSync(folder)[0]!)
}
/** Packs the platform; answers the tarball's path below `into`. */
export const packPlatform = (into: string): Promise<string> =>
  inTurn(async () => {
    const tarball = await packed()
    const at = join(into, basename(tarball))
    cpSync(tarball, at)
    return at
  })
/**
 * Installs the packed platform in an empty folder, as the guides say it; answers the path of its
 * node_modules, for a link: 23,000 files are written once.
 */
export const installPlatform = (): Promise<string> =>
  inTurn(async () => {
    const tarball = await packed()
    const folder = await once('installed', async into => {
      writeFileSync(join(into, 'package.json'), '{ "private": true }')
      await run(
        'npm',
        ['install', '--no-save', '--prefer-offline', '--loglevel=error', tarball],
        into,
      )
    })
    return join(folder, 'node_modules')
  })
