// A MongoDB-compatible server for the tests, where MONGODB_URL names none: SecantusDB, the real WiredTiger engine behind MongoDB's protocol. It is not MongoDB.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { connect } from 'node:net'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from '../kit/process.ts'

export type Started = { readonly url: string; stop(): Promise<void> } | { readonly why: string }

const requirements = join(import.meta.dirname, 'mongodb.txt')
const startMsMax = 30_000
/** Outside the checkout: a clean clone finds what an earlier one installed. */
const cacheDir = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'agent-platform', 'servers')

/** Installed once for each state of the requirements; a half-made folder is never taken for a whole one. */
function install(): string {
  const folder = join(cacheDir, `mongodb-${createHash('sha256').update(readFileSync(requirements)).digest('hex').slice(0, 12)}`)
  if (existsSync(folder)) return folder
  mkdirSync(cacheDir, { recursive: true })
  const made = mkdtempSync(join(cacheDir, '.new-')), run = (command: string, ...args: string[]) => execFileSync(command, args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: 300_000 })
  try {
    run('python3', '-m', 'venv', made)
    run(join(made, 'bin', 'python'), '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--require-hashes', '--only-binary', ':all:', '-r', requirements)
    renameSync(made, folder)
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
  return folder
}
const answers = (port: number) => new Promise<boolean>(done => {
  const socket = connect(port, '127.0.0.1').once('connect', () => done(socket.destroy() !== undefined)).once('error', () => done(false))
})

/** `why`: no server can be had here. */
export async function startMongo(): Promise<Started> {
  let folder: string
  try {
    folder = install()
  } catch (error) {
    const said = String((error as { stderr?: Buffer }).stderr ?? (error as Error).message).trim().split('\n').at(-1)
    return { why: `it could not be installed from PyPI (${said})` }
  }
  const dataDir = mkdtempSync(join(tmpdir(), 'agent-platform-mongodb-')), port = await freePort()
  // By its module: a script in a folder that was renamed names the interpreter where it was.
  const child = spawn(join(folder, 'bin', 'python'), ['-c', 'import sys; from importlib.metadata import entry_points; sys.exit(entry_points(group="console_scripts")["secantusd-py"].load()())', '--host', '127.0.0.1', '--port', String(port), '--storage-path', dataDir], { stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.on('data', (part: Buffer) => { said = (said + part.toString()).slice(-2000) })
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
    }
    rmSync(dataDir, { recursive: true, force: true })
  }
  const deadline = Date.now() + startMsMax
  while (child.exitCode === null && Date.now() < deadline) {
    if (await answers(port)) return { url: `mongodb://127.0.0.1:${port}/`, stop }
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  await stop()
  return { why: `it did not start: ${said.trim().split('\n').at(-1)}` }
}
