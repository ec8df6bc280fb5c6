// What a partner does with npm: runs it in a folder, and packs what lies there.
import { execFile } from 'node:child_process'
import { mkdirSync, rmSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

export const repository = resolve(import.meta.dirname, '../..')
/** npm, without what it says about itself. */
export const quiet = { npm_config_update_notifier: 'false', npm_config_fund: 'false', npm_config_audit: 'false' }
export const run = (command: string, args: readonly string[], cwd: string) => promisify(execFile)(command, args, { cwd, env: { ...process.env, ...quiet }, maxBuffer: 1 << 24 })
/** Packing the platform makes dist/ anew: test files that run side by side take turns. A turn that is older than this is over, in milliseconds. */
const turnMsMax = 60_000
async function inTurn<T>(work: () => Promise<T>): Promise<T> {
  const turn = join(repository, 'node_modules/.packing')
  for (;;) {
    try {
      mkdirSync(turn)
      break
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      if (Date.now() - (statSync(turn, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) > turnMsMax) rmSync(turn, { recursive: true, force: true })
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
export const pack = (from: string, into: string): Promise<string> => inTurn(async () => join(into, (await run('npm', ['pack', '--pack-destination', into, '--loglevel=error'], from)).stdout.trim().split('\n').at(-1)!))
