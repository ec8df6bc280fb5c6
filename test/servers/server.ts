// What every server for the tests has in common: it is installed once outside the checkout, started
// on a free port with a folder of its own, waited for, and ended with its data.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs'
import { connect } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../support/process.ts'

/**
 * `why`: no server can be had here. `kill`: SIGKILL, and nothing more until `again`, which starts
 * it on the same port and data.
 */
export type Server = {
  readonly url: string
  readonly port: number
  stop(): Promise<void>
  kill(): Promise<void>
  again(): Promise<void>
}
export type Started = Server | { readonly why: string }
/** What is to be run, given where it shall listen on 127.0.0.1 and keep its data. */
export type Command = {
  readonly command: string
  readonly args: readonly string[]
  readonly env?: NodeJS.ProcessEnv
}
export type Program = (place: { readonly port: number; readonly dataDir: string }) => Command
/** True when the server that listens there can work. */
export type Ready = (port: number) => Promise<boolean>

const startMsMax = 60_000
/** Outside the checkout: a clean clone finds what an earlier one installed. */
const cacheDir = join(
  process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'),
  'agent-platform',
  'servers',
)

/**
 * The folder of what `make` fills, made once for each state of `recipe` (versions and checksums); a
 * half-made folder is never taken for a whole one.
 */
export async function installed(
  name: string,
  recipe: string | Buffer,
  make: (folder: string) => void | Promise<void>,
): Promise<string> {
  const folder = join(
    cacheDir,
    `${name}-${createHash('sha256').update(recipe).digest('hex').slice(0, 12)}`,
  )
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
export const lastLine = (error: unknown) =>
  String((error as { stderr?: Buffer }).stderr ?? (error as Error).message)
    .trim()
    .split('\n')
    .at(-1)

export const accepts: Ready = port =>
  new Promise(done => {
    const socket = connect(port, '127.0.0.1')
      .once('connect', () => done(socket.destroy() !== undefined))
      .once('error', () => done(false))
  })

/** Starts the program and resolves when it is ready; `url` is made of its port. */
export async function started(
  name: string,
  program: Program,
  { url, ready = accepts }: { url: (port: number) => string; ready?: Ready },
): Promise<Started> {
  const dataDir = mkdtempSync(join(tmpdir(), `agent-platform-${name}-`))
  const port = await freePort()
  const { command, args, env } = program({ port, dataDir })
  let child: ChildProcess | undefined
  let said = ''
  const alive = () =>
    child?.pid !== undefined && child.exitCode === null && child.signalCode === null
  const end = async (signal: NodeJS.Signals) => {
    if (!alive()) return
    const ended = once(child!, 'exit')
    child!.kill(signal)
    await ended
  }
  const stop = async () => {
    await end('SIGTERM')
    rmSync(dataDir, { recursive: true, force: true })
  }
  /** False when it ended, or was not ready in time. */
  const begin = async (): Promise<boolean> => {
    child = spawn(command, args, {
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { ...process.env, ...env },
    })
    child.stderr!.on('data', (part: Buffer) => {
      said = (said + part.toString()).slice(-2000)
    })
    child.once('error', error => {
      said = error.message
    })
    for (const deadline = Date.now() + startMsMax; alive() && Date.now() < deadline; ) {
      if (await ready(port)) return true
      await new Promise(resolve => setTimeout(resolve, 100))
    }
    return false
  }
  const why = () => `it did not start: ${said.trim().split('\n').at(-1)}`
  if (!(await begin())) {
    await stop()
    return { why: why() }
  }
  return {
    url: url(port),
    port,
    stop,
    kill: () => end('SIGKILL'),
    async again() {
      if (!(await begin())) throw new Error(why())
    },
  }
}
