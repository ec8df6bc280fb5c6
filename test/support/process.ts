// The server as its own process, so that it can be killed; and the command line beside it.
import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'

const home = resolve(import.meta.dirname, '../..')
const main = join(home, 'kernel/main.ts')
const flags = ['--disable-warning=ExperimentalWarning']
type Env = Readonly<Record<string, string>>

const living = new Set<ChildProcess>()
/** For `test.after`: a server that a failed test left behind would keep its file from ending. */
export async function endProcesses(): Promise<void> {
  await Promise.all(
    [...living].map(async child => {
      const ended = once(child, 'exit')
      child.kill('SIGKILL')
      await ended
    }),
  )
}

export type Process = {
  readonly child: ChildProcess
  readonly port: number
  readonly base: string
  readonly errors: () => string
  kill(signal: NodeJS.Signals): Promise<void>
}

/** Resolves when it serves; rejects with what it said when it ended before that. */
export async function startProcess(env: Env): Promise<Process> {
  const child = spawn(process.execPath, [...flags, main, 'start'], {
    cwd: home,
    env: { ...process.env, HOST: '127.0.0.1', PORT: '0', LOG_LEVEL: 'error', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  living.add(child)
  child.once('exit', () => living.delete(child))
  const said: string[] = []
  child.stderr!.on('data', (part: Buffer) => said.push(part.toString()))
  const port = await new Promise<number>((found, failed) => {
    createInterface({ input: child.stdout! }).on('line', line => {
      const at = /:(\d+)\/api\/v1/.exec(line)?.[1]
      if (at) found(Number(at))
    })
    child.once('exit', () => failed(new Error(said.join('') || 'it ended without a word')))
  })
  return {
    child,
    port,
    base: `http://127.0.0.1:${port}/api/v1`,
    errors: () => said.join(''),
    async kill(signal) {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = once(child, 'exit')
      child.kill(signal)
      await ended
    },
  }
}

/** One command of the command line; answers its --json. Rejects with its standard error. */
export async function commandLine<T>(args: readonly string[], env: Env): Promise<T> {
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [...flags, main, ...args, '--json'],
    { cwd: home, env: { ...process.env, LOG_LEVEL: 'error', ...env } },
  )
  return JSON.parse(stdout) as T
}

export type Ran = { readonly code: number; readonly out: string; readonly err: string }
/**
 * One start of the program, to its end, whatever that is; `code` is -1 where it had to be ended
 * after ten seconds.
 */
export const runMain = (args: readonly string[], env: Env): Promise<Ran> =>
  new Promise(done => {
    execFile(
      process.execPath,
      [...flags, main, ...args],
      {
        cwd: home,
        env: { ...process.env, HOST: '127.0.0.1', PORT: '0', LOG_LEVEL: 'error', ...env },
        timeout: 60_000,
      },
      (error, out, err) =>
        done({ code: error ? (typeof error.code === 'number' ? error.code : -1) : 0, out, err }),
    )
  })

/** A free port that stays the same over restarts. */
export async function freePort(): Promise<number> {
  const { createServer } = await import('node:net')
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  await new Promise(closed => server.close(closed))
  return port
}

export type Signed = { readonly apiKey: string; readonly token: string; readonly orgId: string }
export async function signUp(base: string, env: Env, credits: number): Promise<Signed> {
  const { api_key: apiKey, org_id: orgId } = await commandLine<{ api_key: string; org_id: string }>(
    [
      'admin',
      'create-user',
      '--email',
      `user-${crypto.randomUUID()}@example.org`,
      '--credits',
      String(credits),
    ],
    env,
  )
  return { apiKey, orgId, token: await tokenOf(base, apiKey) }
}
export async function tokenOf(base: string, apiKey: string): Promise<string> {
  const response = await fetch(`${base}/auth/token`, {
    method: 'POST',
    headers: { 'x-api-key': apiKey },
  })
  return ((await response.json()) as { access_token: string }).access_token
}
