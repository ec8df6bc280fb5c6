// What every server for the tests has in common: it is installed once outside the checkout, started on a free port with a folder of its own, waited for, and ended with its data.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../kit/process.ts'

/** `why`: no server can be had here. */
export type Started = { readonly url: string; stop(): Promise<void> } | { readonly why: string }
/** What is to be run, given where it shall listen on 127.0.0.1 and keep its data. */
export type Command = { readonly command: string; readonly args: readonly string[]; readonly env?: NodeJS.ProcessEnv }
export type Program = (place: { readonly port: number; readonly dataDir: string }) => Command
/** True when the server that listens there can work. */
export type Ready = (port: number) => Promise<boolean>

const startMsMax = 60_000
/** Outside the checkout: a clean clone finds what an earlier one installed. */
const cacheDir = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'agent-platform', 'servers')

/** The folder of what `make` fills, made once for each state of `recipe` (versions and checksums); a half-made folder is never taken for a whole one. */
export async function installed(name: string, recipe: string | Buffer, make: (folder: string) => void | Promise<void>): Promise<string> {
  const folder = join(cacheDir, `${name}-${createHash('sha256').update(recipe).digest('hex').slice(0, 12)}`)
  if (existsSync(folder)) return folder
  mkdirSync(cacheDir, { recursive: true })
  const made = mkdtempSync(join(cacheDir, '.new-'))
  try {
    await make(made)
    if (!existsSync(folder)) renameSync(made, folder)
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
  return folder
}

/** The last line of what a failed command said. */
export const lastLine = (error: unknown) => String((error as { stderr?: Buffer }).stderr ?? (error as Error).message).trim().split('\n').at(-1)

export const accepts: Ready = port => new Promise(done => {
  const socket = connect(port, '127.0.0.1').once('connect', () => done(socket.destroy() !== undefined)).once('error', () => done(false))
})

/** Starts the program and resolves when it is ready; `url` is made of its port. */
export async function started(name: string, program: Program, { url, ready = accepts }: { url: (port: number) => string; ready?: Ready }): Promise<Started> {
  const dataDir = mkdtempSync(join(tmpdir(), `agent-platform-${name}-`)), port = await freePort(), { command, args, env } = program({ port, dataDir })
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...env } })
  let said = ''
  child.stderr.on('data', (part: Buffer) => { said = (said + part.toString()).slice(-2000) })
  child.once('error', error => { said = error.message })
  const alive = () => child.pid !== undefined && child.exitCode === null && child.signalCode === null
  const stop = async () => {
    if (alive()) {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    }
    rmSync(dataDir, { recursive: true, force: true })
  }
  const deadline = Date.now() + startMsMax
  while (alive() && Date.now() < deadline) {
    if (await ready(port)) return { url: url(port), stop }
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  await stop()
  return { why: `it did not start: ${said.trim().split('\n').at(-1)}` }
}
