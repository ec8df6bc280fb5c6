// Thousands of quiet event streams and a thousand busy runs in one server process, for minutes:
// what it holds must not grow, and what it was given must come to its end.
import { execFileSync } from 'node:child_process'
import { openLoad, type First } from '../load.ts'
import { byLabel, type Metrics } from '../probe.ts'
import { percentile, verdict, type Memory } from '../verdict.ts'
import { busy, fail, idle, intervalMs, minutes, tokens } from './soak-options.ts'
import { mib, writeSoak } from './soak-report.ts'
import { pause, startSoakServer } from './soak-server.ts'

const say = (text: string) => process.stdout.write(`${text}\n`)

const lineMs = 10_000
const tokenMs = 300_000
/** Collections of garbage, at each of which memory is measured. */
const samplesCount = 15
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

const server = await startSoakServer()
const work = { base: server.base, tokens, intervalMs }
const opened: { end(): Promise<unknown> }[] = []
const open = (idleOnes: number, busyOnes: number, by: string) => {
  const load = openLoad({ ...work, idle: idleOnes, busy: busyOnes }, by)
  opened.push(load)
  return load
}

async function soak(): Promise<boolean> {
  const serverFiles = await server.figure('process_max_fds')
  if (serverFiles < needed)
    throw new Error(`The server may open ${serverFiles} files, and needs about ${needed}.`)
  // What is made once, at the first of its kind, is made before anything is measured.
  const warm = open(100, 100, server.token)
  await warm.until(() => warm.total('asked') === 100 && warm.total('done') >= 100)
  warm.order({ do: 'drain' })
  await warm.until(warm.over)
  await warm.end()
  const before = await server.atRest(0)
  const { balance: had } = await server.balance()
  say(
    `before the load: ${mib(before.rss)} MiB resident, heap ${mib(before.heap, 1)} MiB, ` +
      `${before.files} files`,
  )

  const load = open(idle, busy, await server.fresh())
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
    cpu: await server.figure('process_cpu_seconds_total'),
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
  const heardLag = (metrics: Metrics) => {
    lag = Math.max(lag, metrics.get('nodejs_eventloop_lag_p99_seconds')! * 1000)
  }

  const sample = async () => {
    // Each reading of the metrics begins the delays of the event loop anew: those of the
    // measurement are nobody's.
    heardLag(await server.metrics())
    const from = Date.now()
    heap = await server.heap()
    samples.push({ rss: server.rss(), heap, runs: load.total('done') })
    await server.metrics()
    stops.push({ from, to: Date.now() })
  }
  const line = async () => {
    const listeners = await server.listeners()
    const seen = await server.metrics()
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
    const passed = ((performance.now() - began) / 1000).toFixed(0)
    say(
      `${passed.padStart(4)} s  RSS ${mib(server.rss())} ` +
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
      load.order({ do: 'token', token: await server.fresh() })
    } else await pause(Math.min(nextLine, nextSample, nextToken, endsAt) - now)
  }
  const seconds = (performance.now() - began) / 1000
  const runs = load.total('done') - at.done
  const events = load.total('events') - at.events
  const cpu = (await server.figure('process_cpu_seconds_total')) - at.cpu
  firsts.push(...load.firsts())

  say('the load goes: every question is answered, no run is started any more')
  load.order({ do: 'token', token: await server.fresh() })
  load.order({ do: 'drain' })
  await load.until(load.over)
  await load.end()
  const after = await server.atRest(load.total('done'))
  const { balance: has, held } = await server.balance()
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

  writeSoak({
    seconds,
    runs,
    events,
    cpuSeconds: cpu,
    before,
    after,
    samples,
    lags,
    stops,
    firsts,
    undisturbed: undisturbed(firsts),
    rows,
  })
  return rows.every(({ holds }) => holds)
}

try {
  process.exitCode = (await soak()) ? 0 : 1
} finally {
  await Promise.all(opened.map(load => load.end()))
  await server.stop()
}
