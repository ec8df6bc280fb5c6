// What a partner does with npm: runs it in a folder, and packs what lies there.
import { execFile } from 'node:child_process'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'

export const repository = resolve(import.meta.dirname, '../..')
/** npm, without what it says about itself. */
export const quiet = { npm_config_update_notifier: 'false', npm_config_fund: 'false', npm_config_audit: 'false' }
export const run = (command: string, args: readonly string[], cwd: string) => promisify(execFile)(command, args, { cwd, env: { ...process.env, ...quiet }, maxBuffer: 1 << 24 })
/** Packs a folder into another; answers the tarball's path, as npm names it last. */
export const pack = async (from: string, into: string) => join(into, (await run('npm', ['pack', '--pack-destination', into, '--loglevel=error'], from)).stdout.trim().split('\n').at(-1)!)
