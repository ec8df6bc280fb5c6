// Ordinary runs beside hostile clients of every kind, for minutes: the runs end as they should, the
// server
// answers in time all along, and afterwards it holds no more than before.
import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { attach, readMetrics } from '../bench/probe.ts'
import { MiB, percentile } from '../bench/verdict.ts'
import {
  endProcesses,
  freePort,
  signUp,
  startProcess,
  tokenOf,
  type Signed,
} from '../support/process.ts'
import { readEvents } from '../conformance/plugin/server.ts'

const help = `npm run siege -- [--seconds 600] [--runs 200] [--clients 12]

  --seconds   how long the hostile clients are at it
  --runs      ordinary runs, spread over that time
  --clients   hostile clients at a time; each does one kind of attack after another

Prints what was attacked and what held, and ends with 1 where something did not.
`
const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '600' },
    runs: { type: 'string', default: '200' },
    clients: { type: 'string', default: '12' },
    help: { type: 'boolean', default: false },
  },
})
if (values.help) {
  process.stdout.write(help)
  process.exit(0)
}
const [seconds, runs, clients] = [values.seconds, values.runs, values.clients].map(Number) as [
  number,
  number,
  number,
]
if (![seconds, runs, clients].every(value => value > 0))
  throw new Error('--seconds, --runs and --clients are numbers above 0.')

const healthMsMax = 250
const healthEveryMs = 50
const runMsMax = 60_000
const tokens = 40
const usersCount = 10
/**
 * What a heap may differ by after a load: code that was compiled and caches of bounded size stay.
 */
const heapMore = (before: number) => Math.max(16 * MiB, before * 0.25)
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
const say = (text: string) => process.stdout.write(`${text}\n`)

const home = mkdtempSync(join(tmpdir(), 'agent-platform-siege-'))
const metricsPort = await freePort()
const debugPort = await freePort()
const env = {
  DATA_DIR: home,
  METRICS_PORT: String(metricsPort),
  TRUST_PROXY: '1',
  NODE_OPTIONS: `--inspect-port=127.0.0.1:${debugPort}`,
  MODELS_URL: 'scripted:?tokens=20',
  LIMITS_TOKEN_PER_MINUTE: '1000',
  HTTP_SILENCE_MS: '10000',
  LOG_LEVEL: 'error',
}
const expected = Array.from({ length: tokens }, (_, n) => `token${String(n).padStart(2, '0')} `)
  .join('')
  .trimEnd()

/**
 * One run as an ordinary client makes it: started, followed, cut off, followed again to its end.
 */
async function ordinary(base: string, { token }: Signed, at: number): Promise<string> {
  const headers = { authorization: `Bearer ${token}`, 'x-forwarded-for': `192.0.2.${at % 200}` }
  const signal = AbortSignal.timeout(runMsMax)
  const body = JSON.stringify({
    message: `[[tokens=${tokens}]][[interval_ms=50]] run ${at}`,
    idempotency_key: `run ${at}`,
  })
  const started = await fetch(`${base}/chat`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body,
    signal,
  })
  if (started.status !== 200)
    return `POST /chat answered ${started.status}: ${await started.text()}`
  const { run_id } = (await started.json()) as { run_id: string }
  const events = (after: number) =>
    fetch(`${base}/runs/${run_id}/events?after=${after}`, { headers, signal })
  const first = await readEvents(
    await events(0),
    ({ event, data }) => event === 'token' && String(data['text']).includes(`token${tokens / 4} `),
  )
  const rest = await readEvents(await events(first.at(-1)!.id))
  const all = [...first, ...rest]
  const text = all
    .filter(({ event }) => event === 'token')
    .map(({ data }) => data['text'])
    .join('')
    .trimEnd()
  const ends = all.filter(({ event }) => event === 'done' || event === 'error')
  return ends.length === 1 && ends[0]!.event === 'done' && text === expected
    ? 'done'
    : `run ${run_id}: ${ends.map(({ event }) => event).join(' ')} after ${text.slice(-40)}`
}
/** Milliseconds of each answer; a failed one counts as all the time there is. */
function watchHealth(base: string) {
  const answers: number[] = []
  let isOver = false
  const ended = (async () => {
    while (!isOver) {
      const began = performance.now()
      const ok = await fetch(`${base}/healthz`, { signal: AbortSignal.timeout(30_000) }).then(
        async response => (await response.text(), response.ok),
        () => false,
      )
      answers.push(ok ? performance.now() - began : 30_000)
      await pause(healthEveryMs)
    }
  })()
  return { answers, end: async () => ((isOver = true), await ended) }
}
const attackers: ChildProcess[] = []
async function besiege(
  port: number,
  token: string,
  forMs: number,
): Promise<Record<string, number>> {
  const child = fork(
    join(import.meta.dirname, 'attacker.ts'),
    [String(port), token, String(clients)],
    { execArgv: ['--disable-warning=ExperimentalWarning'] },
  )
  attackers.push(child)
  const made = once(child, 'message') as Promise<[Record<string, number>]>
  await pause(forMs)
  child.send('end')
  return (await made)[0]
}
type Row = { readonly what: string; readonly measured: string; readonly holds: boolean }

async function siege(): Promise<readonly Row[]> {
  const server = await startProcess(env)
  const probe = await attach(server, debugPort)
  const plain = { ...env, NODE_OPTIONS: '' }
  const enemy = await signUp(server.base, plain, 100_000_000)
  const users: Signed[] = []
  for (let n = 0; n < usersCount; n++) users.push(await signUp(server.base, plain, 1_000_000))
  const collected = async () => {
    for (let tries = 0; tries < 60; tries++, await pause(1000))
      if ((await readMetrics(metricsPort)).get('http_open_streams') === 0) break
    await probe.heap()
    await pause(5000)
    return probe.heap()
  }
  // What is made once, at the first of its kind, is made before anything is measured.
  await Promise.all([besiege(server.port, enemy.token, 8000), ordinary(server.base, users[0]!, -1)])
  const before = await collected()
  const health = watchHealth(server.base)
  const began = performance.now()
  say(`heap before: ${(before / MiB).toFixed(1)} MiB`)
  const attacked = (async () => {
    const made: Record<string, number> = {}
    // An access token lives for fifteen minutes.
    for (let left = seconds; left > 0; left -= 300) {
      const token = await tokenOf(server.base, enemy.apiKey)
      for (const [name, count] of Object.entries(
        await besiege(server.port, token, Math.min(left, 300) * 1000),
      ))
        made[name] = (made[name] ?? 0) + count
    }
    return made
  })()
  const outcomes = await Promise.all(
    Array.from({ length: runs }, async (_, at) => {
      await pause((at / runs) * seconds * 1000)
      const user = users[at % usersCount]!
      return ordinary(
        server.base,
        { ...user, token: await tokenOf(server.base, user.apiKey) },
        at,
      ).catch((error: Error) => `run ${at}: ${error.message}`)
    }),
  )
  const made = await attacked
  await health.end()
  const took = ((performance.now() - began) / 1000).toFixed(0)
  const after = await collected()
  const bad = outcomes.filter(outcome => outcome !== 'done')
  probe.close()
  say(
    `${took} s of ${Object.entries(made)
      .map(([name, count]) => `${name} ${count}`)
      .join(', ')}`,
  )
  if (bad.length > 0) say(bad.slice(0, 10).join('\n'))
  const errors = server
    .errors()
    .split('\n')
    .filter(line => line !== '' && !/^Debugger|^For help, see/.test(line))
  if (errors.length > 0) say(errors.slice(0, 10).join('\n'))
  const ms = (share: number) => percentile(health.answers, share)
  return [
    {
      what: 'ordinary runs that ended with their whole answer',
      measured: `${runs - bad.length} of ${runs}`,
      holds: bad.length === 0,
    },
    {
      what: `GET /healthz, p99 below ${healthMsMax} ms`,
      measured:
        `p50 ${ms(0.5).toFixed(0)}, p99 ${ms(0.99).toFixed(0)}, most ${ms(1).toFixed(0)} ms ` +
        `of ${health.answers.length}`,
      holds: ms(0.99) < healthMsMax,
    },
    {
      what: 'heap after collection, back to where it was',
      measured: `${(before / MiB).toFixed(1)} → ${(after / MiB).toFixed(1)} MiB`,
      holds: after - before <= heapMore(before),
    },
    {
      what: 'the server still runs, and logged no error',
      measured: `${errors.length} lines`,
      holds: server.child.exitCode === null && errors.length === 0,
    },
  ]
}

try {
  const rows = await siege()
  for (const { what, measured, holds } of rows)
    say(`${holds ? 'held  ' : 'BROKEN'} ${what}: ${measured}`)
  process.exitCode = rows.every(({ holds }) => holds) ? 0 : 1
} finally {
  for (const child of attackers) child.kill('SIGKILL')
  await endProcesses()
  rmSync(home, { recursive: true, force: true })
}
