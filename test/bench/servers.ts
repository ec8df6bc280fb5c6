// Starts the product and the peer for the benchmark, each on the first core.
import { execFileSync, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { commandLine } from '../support/process.ts'

const home = resolve(import.meta.dirname, '../..')
export const peerDir = join(import.meta.dirname, 'langgraph-js')
export type Target = {
  readonly name: string
  readonly target: string
  readonly base: string
  readonly pids: readonly number[]
  readonly token?: string
  stop(): Promise<void>
}

const pause = (ms: number) => new Promise(fulfil => setTimeout(fulfil, ms))
/** The benchmark needs a core for each side; without taskset both share what there is. */
export const onCore = (core: number): string[] =>
  spawnSync('taskset', ['-V']).status === 0 ? ['taskset', '-c', String(core)] : []

/** A process and everything that it started. */
function treeOf(root: number): number[] {
  const parents = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(name => {
      try {
        return [
          [
            Number(name),
            Number(readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1]!.split(' ')[1]),
          ] as const,
        ]
      } catch {
        return []
      }
    })
  const found = [root]
  for (const pid of found)
    found.push(...parents.filter(([, parent]) => parent === pid).map(([child]) => child))
  return found
}
/** MiB, of the biggest process: a watcher or a launcher beside it is not counted. */
export const residentMiB = (pids: readonly number[]): number =>
  Math.max(
    ...pids.map(
      pid => (Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * 4) / 1024,
    ),
  )

async function until(url: string): Promise<void> {
  for (let i = 0; i < 600; i++) {
    if (
      await fetch(url).then(
        ({ ok }) => ok,
        () => false,
      )
    )
      return
    await pause(100)
  }
  throw new Error(`${url} does not answer.`)
}
const launch = (
  command: string[],
  options: { cwd: string; env: Record<string, string> },
): ChildProcess =>
  spawn(command[0]!, command.slice(1), {
    ...options,
    env: { ...process.env, ...options.env },
    stdio: 'ignore',
    detached: true,
  })
const ending = (child: ChildProcess) => async () => {
  try {
    process.kill(-child.pid!, 'SIGTERM')
  } catch {
    return
  }
  await Promise.race([new Promise(ended => child.once('exit', ended)), pause(8000)])
}

export async function startProduct(
  settings: Readonly<Record<string, string>> = {},
): Promise<Target> {
  const dataDir = mkdtempSync(join(home, '.bench-'))
  const port = '8181'
  const base = `http://127.0.0.1:${port}`
  const env = {
    PORT: port,
    HOST: '127.0.0.1',
    DATA_DIR: dataDir,
    MODELS_URL: 'scripted:?tokens=20',
    LIMITS_RUNS_PER_SECOND: '1000000',
    LIMITS_RUNS_BURST: '1000000',
    LIMITS_TOKEN_PER_MINUTE: '1000000',
    LOG_LEVEL: 'error',
    ...settings,
  }
  const child = launch([...onCore(0), process.execPath, 'kernel/main.ts', 'start'], {
    cwd: home,
    env,
  })
  await until(`${base}/api/v1/readyz`)
  const { api_key: key } = await commandLine<{ api_key: string }>(
    [
      'admin',
      'create-user',
      '--email',
      `bench-${port}-${Date.now()}@example.org`,
      '--credits',
      '100000000',
    ],
    env,
  )
  const { access_token: token } = (await (
    await fetch(`${base}/api/v1/auth/token`, { method: 'POST', headers: { 'x-api-key': key } })
  ).json()) as { access_token: string }
  const end = ending(child)
  return {
    name: 'this platform',
    target: 'platform',
    base,
    pids: [child.pid!],
    token,
    stop: async () => {
      await end()
      rmSync(dataDir, { recursive: true, force: true })
    },
  }
}

export async function startPeer(): Promise<Target> {
  if (!existsSync(join(peerDir, 'node_modules')))
    execFileSync(
      'npm',
      ['install', '--legacy-peer-deps', '--no-audit', '--no-fund', '--loglevel=error'],
      { cwd: peerDir, stdio: 'inherit' },
    )
  rmSync(join(peerDir, '.langgraph_api'), { recursive: true, force: true })
  const base = 'http://127.0.0.1:2125'
  const child = launch(
    [
      ...onCore(0),
      process.execPath,
      'node_modules/.bin/langgraphjs',
      'dev',
      '--no-browser',
      '--port',
      '2125',
      '--n-jobs-per-worker',
      '64',
    ],
    { cwd: peerDir, env: { LOG_LEVEL: 'error', TMPDIR: tmpdir() } },
  )
  await until(`${base}/ok`)
  await pause(2000)
  return {
    name: 'LangGraph JS 2.0.0',
    target: 'langgraph',
    base,
    pids: treeOf(child.pid!),
    stop: ending(child),
  }
}

export type Figures = {
  per_s: number
  bad: number
  ttfe_p50: number
  cpu_ms_per_run: number
  resume_bad?: number
  err?: string
}
/** One run of the load client, on the second core. */
export function measure(
  { target, base, pids, token }: Target,
  mode: string,
  c: number,
  n: number,
): Figures {
  const [pid, ...others] = pids
  const args = [
    '--target',
    target,
    '--base',
    base,
    '--mode',
    mode,
    '--c',
    String(c),
    '--n',
    String(n),
    '--pid',
    String(pid),
    ...(others.length > 0 ? ['--pids', others.join(',')] : []),
    ...(token ? ['--token', token] : []),
  ]
  const command = [...onCore(1), process.execPath, join(import.meta.dirname, 'client.mjs'), ...args]
  return JSON.parse(
    execFileSync(command[0]!, command.slice(1), { encoding: 'utf8', maxBuffer: 1 << 24 }),
  ) as Figures
}
