// Thousands of quiet event streams and a thousand busy runs in one server process, for minutes:
// what it holds must not grow, and what it was given must come to its end.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { endProcesses, freePort, signUp, startProcess } from '../../support/process.ts'
import { openLoad, type First } from '../load.ts'
import { attach, byLabel, readMetrics } from '../probe.ts'
import { circumstances, writeChapter } from '../report.ts'
import { residentMiB } from '../servers.ts'
import { busy, command, fail, idle, intervalMs, minutes, tokens } from './soak-options.ts'
import { MiB, percentile, verdict, type Memory, type Rest } from '../verdict.ts'

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
const say = (text: string) => process.stdout.write(`${text}\n`)
const mib = (bytes: number, digits = 0) => (bytes / MiB).toFixed(digits)

const credits = 100_000_000
const lineMs = 10_000
const tokenMs = 300_000
/** Collections of garbage, at each of which memory is measured. */
const samplesCount = 15
/**
 * Pauses between the collections after a load: the engine and its allocator give memory back when
 * they have been idle for a while.
 */
const restMs = [5000, 15_000, 1000]
/** After a measurement that stopped the server, what had waited is still being made good. */
const recoveryMs = 500

const filesMax = Number(execFileSync('sh', ['-c', 'ulimit -n'], { encoding: 'utf8' })) || Infinity
const needed = idle + 2 * busy + 500
if (filesMax < needed)
  fail(
    `A process may open ${filesMax} files here; the server needs about ${needed} for ` +
      `${idle + busy} streams. Raise it (ulimit -n ${needed}), or ask for fewer.`,
  )
if (idle + 2 * busy > 25_000)
  fail(
    'More than 25,000 connections from one address to one port do not exist: the system ' +
      'has no more ports for their other ends.',
  )

const home = mkdtempSync(join(tmpdir(), 'agent-platform-soak-'))
const metricsPort = await freePort()
const debugPort = await freePort()
const places = String(busy + idle + 1000)
const env = {
  DATA_DIR: home,
  METRICS_PORT: String(metricsPort),
  MODELS_URL: `scripted:?tokens=${tokens}&interval_ms=${intervalMs}&reasoning=1`,
  NODE_OPTIONS: `--inspect-port=127.0.0.1:${debugPort}`,
  // One user and one address have them all.
  HTTP_STREAMS_MAX: places,
  HTTP_STREAMS_PER_USER_MAX: places,
  HTTP_STREAMS_PER_ADDRESS_MAX: places,
  LIMITS_RUNS_PER_SECOND: '1000000',
  LIMITS_RUNS_BURST: '1000000',
  LIMITS_TOKEN_PER_MINUTE: '1000',
  RUNS_ACTIVE_MAX: places,
  RUNS_ACTIVE_PER_ORG_MAX: places,
  RUNS_WAITING_MAX: places,
  RUNS_WAITING_PER_ORG_MAX: places,
  // So that logs are made small while others are written, as on a server that is up for longer.
  RUNS_COMPACT_AFTER_MS: String(Math.round(Math.min(60_000, minutes * 10_000))),
  RUNS_RETENTION_MS: '5000',
}
const server = await startProcess(env)
const probe = await attach(server, debugPort)
// The debugger's port is the server's alone.
const { token, apiKey } = await signUp(server.base, { ...env, NODE_OPTIONS: '' }, credits)
const fresh = async () =>
  (
    (await (
      await fetch(`${server.base}/auth/token`, {
        method: 'POST',
        headers: { 'x-api-key': apiKey, connection: 'close' },
      })
    ).json()) as { access_token: string }
  ).access_token
const balance = async () =>
  (await (
    await fetch(`${server.base}/balance`, {
      headers: { authorization: `Bearer ${await fresh()}`, connection: 'close' },
    })
  ).json()) as { balance: number; held: number }
const figure = async (name: string) => (await readMetrics(metricsPort)).get(name) ?? NaN
const rss = () => residentMiB([server.child.pid!]) * MiB

/** Once nothing is under way any more: connections close a moment after their streams. */
async function atRest(runs: number): Promise<Rest> {
  for (let tries = 0, before = -1; tries < 100; tries++, await pause(500)) {
    const seen = await readMetrics(metricsPort)
    const now = seen.get('nodejs_active_handles_total')!
    if (
      seen.get('http_open_streams') === 0 &&
      seen.get('runs_active{state="active"}') === 0 &&
      now === before
    )
      break
    before = now
  }
  // What was needed at the peak goes back to the system by and by; and the last reading's
  // connection goes, too.
  for (const ms of restMs) {
    await probe.heap()
    await pause(ms)
  }
  const heap = await probe.heap()
  const resident = rss()
  const census = await probe.census()
  const seen = await readMetrics(metricsPort)
  return {
    rss: resident,
    heap,
    runs,
    listeners: census.by,
    streams: seen.get('http_open_streams')!,
    driven: seen.get('runs_active{state="active"}')!,
    files: seen.get('process_open_fds')!,
    handles: byLabel(seen, 'nodejs_active_handles'),
    resources: byLabel(seen, 'nodejs_active_resources'),
  }
}

const work = { base: server.base, tokens, intervalMs }
const opened: { end(): Promise<unknown> }[] = []
const open = (idleOnes: number, busyOnes: number, by: string) => {
  const load = openLoad({ ...work, idle: idleOnes, busy: busyOnes }, by)
  opened.push(load)
  return load
}

async function soak(): Promise<boolean> {
  const serverFiles = await figure('process_max_fds')
  if (serverFiles < needed)
    throw new Error(`The server may open ${serverFiles} files, and needs about ${needed}.`)
  // What is made once, at the first of its kind, is made before anything is measured.
  const warm = open(100, 100, token)
  await warm.until(() => warm.total('asked') === 100 && warm.total('done') >= 100)
  warm.order({ do: 'drain' })
  await warm.until(warm.over)
  await warm.end()
  const before = await atRest(0)
  const { balance: had } = await balance()
  say(
    `before the load: ${mib(before.rss)} MiB resident, heap ${mib(before.heap, 1)} MiB, ` +
      `${before.files} files`,
  )

  const load = open(idle, busy, await fresh())
  await load.until(() => load.total('asked') >= idle && load.total('open') >= idle + busy * 0.9)
  load.firsts()
  say(
    `${load.count} client processes; ${load.total('open')} streams are open, ` +
      `${load.total('asked')} of them of runs that wait`,
  )

  const began = performance.now()
  const endsAt = began + minutes * 60_000
  const everyMs = (minutes * 60_000) / samplesCount
  const samples: Memory[] = []
  const firsts: First[] = []
  const lags: number[] = []
  const stops: { readonly from: number; readonly to: number }[] = []
  const at = {
    done: load.total('done'),
    events: load.total('events'),
    cpu: await figure('process_cpu_seconds_total'),
  }
  let heap = before.heap
  let lag = 0
  let last = { ...at }
  /** Milliseconds; those that a measurement did not stop. */
  const undisturbed = (list: readonly First[]) =>
    list
      .filter(
        ({ ms, at: came }) =>
          !stops.some(({ from, to }) => came >= from && came - ms <= to + recoveryMs),
      )
      .map(({ ms }) => ms)
  const heardLag = (metrics: ReadonlyMap<string, number>) => {
    lag = Math.max(lag, metrics.get('nodejs_eventloop_lag_p99_seconds')! * 1000)
  }

  const sample = async () => {
    // Each reading of the metrics begins the delays of the event loop anew: those of the
    // measurement are nobody's.
    heardLag(await readMetrics(metricsPort))
    const from = Date.now()
    heap = await probe.heap()
    samples.push({ rss: rss(), heap, runs: load.total('done') })
    await readMetrics(metricsPort)
    stops.push({ from, to: Date.now() })
  }
  const line = async () => {
    const listeners = await probe.listeners()
    const seen = await readMetrics(metricsPort)
    const came = load.firsts()
    const now = { ...last, done: load.total('done'), events: load.total('events') }
    heardLag(seen)
    lags.push(lag)
    firsts.push(...came)
    const kinds = Object.entries(byLabel(seen, 'nodejs_active_resources'))
      .filter(([, count]) => count > 0)
      .map(([kind, count]) => `${kind} ${count}`)
      .join(', ')
    const list = undisturbed(came)
    say(
      `${((performance.now() - began) / 1000).toFixed(0).padStart(4)} s  RSS ${mib(rss())} ` +
        `MiB, heap ${mib(seen.get('nodejs_heap_size_used_bytes')!)} (collected ` +
        `${mib(heap, 1)}) MiB; streams ${seen.get('http_open_streams')}, ` +
        `runs driven ${seen.get('runs_active{state="active"}')}, done ${now.done} ` +
        `(+${now.done - last.done}), events +${now.events - last.events}, failed ` +
        `${load.total('failed')}, broke ${load.total('broke')}; ` +
        `first event p50 ${percentile(list, 0.5).toFixed(0)} p99 ` +
        `${percentile(list, 0.99).toFixed(0)} ms; loop p99 ${lag.toFixed(0)} ms; handles ` +
        `${seen.get('nodejs_active_handles_total')}, files ` +
        `${seen.get('process_open_fds')}, listeners ${listeners}; ${kinds}`,
    )
    lag = 0
    last = now
  }
  let nextLine = began + lineMs
  let nextSample = began + everyMs / 2
  let nextToken = began + tokenMs
  for (let now = began; now < endsAt; now = performance.now()) {
    load.check()
    if (now >= nextLine) {
      nextLine += lineMs
      await line()
    } else if (now >= nextSample) {
      nextSample += everyMs
      await sample()
    } else if (now >= nextToken) {
      nextToken += tokenMs
      load.order({ do: 'token', token: await fresh() })
    } else await pause(Math.min(nextLine, nextSample, nextToken, endsAt) - now)
  }
  const seconds = (performance.now() - began) / 1000
  const runs = load.total('done') - at.done
  const events = load.total('events') - at.events
  const cpu = (await figure('process_cpu_seconds_total')) - at.cpu
  firsts.push(...load.firsts())

  say('the load goes: every question is answered, no run is started any more')
  load.order({ do: 'token', token: await fresh() })
  load.order({ do: 'drain' })
  await load.until(load.over)
  await load.end()
  const after = await atRest(load.total('done'))
  const { balance: has, held } = await balance()
  if (load.why().length > 0) say(load.why().join('\n'))
  // The debugger tells of itself where the server tells of errors.
  const errors = server
    .errors()
    .split('\n')
    .filter(text => text !== '' && !/^Debugger|^For help, see/.test(text))
    .join('\n')
  const rows = verdict({
    samples,
    before,
    after,
    started: load.total('started'),
    done: load.total('done'),
    failed: load.total('failed'),
    broke: load.total('broke'),
    charged: had - has,
    held,
    errors,
  })

  const most = (field: 'rss' | 'heap') => Math.max(...samples.map(one => one[field]))
  const of = (list: readonly number[], ...shares: number[]) =>
    shares.map(share => percentile(list, share).toFixed(0)).join(', ')
  const all = firsts.map(({ ms }) => ms)
  const streams = [most('rss') - before.rss, most('heap') - before.heap]
    .map(bytes => (bytes / 1024 / (idle + busy)).toFixed(1))
    .join(', ')
  const stopped = of(
    stops.map(({ from, to }) => to - from),
    0.5,
    1,
  ).replace(', ', ' ms, at most ')
  const residents = `${mib(before.rss)}, ${mib(most('rss'))}, ${mib(after.rss)}`
  const heaps = `${mib(before.heap, 1)}, ${mib(most('heap'), 1)}, ${mib(after.heap, 1)}`
  const undelayed = of(undisturbed(firsts), 0.5, 0.99, 1)
  const kept = rows.map(
    ({ what, measured, rule, holds }) =>
      `| ${what} | ${measured} | ${rule} | ${holds ? 'held' : 'BROKEN'} |`,
  )
  writeChapter(
    'Soak',
    `${circumstances(command)}; server and clients on the same cores. ` +
      `One server process, the embedded default.
${idle} runs wait for an answer of their user, each with its reader; ${busy} runs of ${tokens} ` +
      `tokens, ${intervalMs} ms apart, are under way at any time, each with its reader; ` +
      `ended logs are made small meanwhile. Then all are answered, and end.

| over ${seconds.toFixed(0)} s | |
|---|---|
| busy runs ended | ${runs}, ${(runs / seconds).toFixed(0)} a second |
| events that readers got | ${events}, ${(events / seconds).toFixed(0)} a second |
| first event of a run, ms: p50, p99, most | ${undelayed}; ` +
      `with those that a measurement stopped ${of(all, 0.5, 0.99, 1)} |
| delay of the event loop, ms: p99 of ten seconds, its median and most (10 is none) ` +
      `| ${of(lags, 0.5, 1)} |
| the server's CPU | ${((100 * cpu) / seconds).toFixed(0)} % of a core |
| resident, MiB: before the load, most, after it | ${residents} |
| heap after collection, MiB: before the load, most, after it | ${heaps} |
| a stream, KiB, with its run: resident, heap | ${streams} |

Memory was measured ${samples.length} times, each after a forced collection of garbage; ` +
      `each of these stopped the server, for ${stopped} ms.

| what must hold | measured | rule | |
|---|---|---|---|
${kept.join('\n')}`,
  )
  return rows.every(({ holds }) => holds)
}

try {
  process.exitCode = (await soak()) ? 0 : 1
} finally {
  probe.close()
  await Promise.all(opened.map(load => load.end()))
  await endProcesses()
  rmSync(home, { recursive: true, force: true })
}
