// The platform against its peer: the same work, interleaved rounds, server on one core and client
// on the other. Ratios are what to trust.
//   npm run bench               prints, and writes its chapter of test/bench/REPORT.md
//   npm run bench -- --rounds 1 quicker, rougher; ends with the figures for the MongoDB binding
//   (npm run bench:mongodb)
import { sqliteBaseline } from './baseline.ts'
import { circumstances, writeChapter } from './report.ts'
import {
  measure,
  residentMiB,
  startPeer,
  startProduct,
  type Figures,
  type Target,
} from './servers.ts'
import { idleStream } from './streams.ts'

const rounds = Number(process.argv[process.argv.indexOf('--rounds') + 1]) || 3
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
const median = (list: readonly number[]) =>
  list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)]!
const say = (text: string) => process.stdout.write(`${text}\n`)

type Sample = {
  readonly mode: string
  readonly c: number
  readonly ours: number
  readonly theirs: number
}
const samples: Record<string, Sample> = {
  'c=32': { mode: 'twostep', c: 32, ours: 2560, theirs: 320 },
  'c=256': { mode: 'twostep', c: 256, ours: 2560, theirs: 512 },
  'c=1': { mode: 'twostep', c: 1, ours: 300, theirs: 30 },
  resume: { mode: 'resume', c: 32, ours: 5000, theirs: 640 },
}
type Series = Record<string, Figures[]>

async function memory(start: () => Promise<Target>): Promise<{ idle: number; after: number }> {
  const target = await start()
  await pause(5000)
  const idle = residentMiB(target.pids)
  measure(target, 'twostep', 32, 2000)
  await pause(1000)
  const after = residentMiB(target.pids)
  await target.stop()
  return { idle, after }
}

/**
 * On a server that did nothing else: in one that was busy, the streams would live in memory that it
 * holds already.
 */
async function streams(): Promise<number> {
  const target = await startProduct()
  await pause(5000)
  const each = await idleStream(target, 1000)
  await target.stop()
  return each
}

async function interleaved(): Promise<{ ours: Series; theirs: Series; floors: number[] }> {
  const us = await startProduct()
  const them = await startPeer()
  const ours: Series = {}
  const theirs: Series = {}
  const floors: number[] = []
  measure(us, 'twostep', 32, 2000)
  measure(them, 'twostep', 32, 200)
  for (let round = 0; round < rounds; round++) {
    for (const [name, { mode, c, ours: n, theirs: m }] of Object.entries(samples)) {
      const mine = measure(us, mode, c, n)
      const peers = measure(them, mode, c, m)
      ;(ours[name] ??= []).push(mine)
      ;(theirs[name] ??= []).push(peers)
      say(
        `round ${round + 1} ${name.padEnd(6)} ours ${mine.per_s}/s ${mine.cpu_ms_per_run} ` +
          `ms CPU, bad ${mine.bad}; peer ${peers.per_s}/s ${peers.cpu_ms_per_run} ms CPU, ` +
          `bad ${peers.bad}`,
      )
    }
    floors.push(sqliteBaseline())
  }
  await them.stop()
  await us.stop()
  return { ours, theirs, floors }
}

// The first start compiles and keeps the compiled code; an operator has every start after it.
await (await startProduct()).stop()
const ourMemory = await memory(startProduct)
const peerMemory = await memory(startPeer)
say(
  `resident: ours ${ourMemory.idle.toFixed(0)} → ${ourMemory.after.toFixed(0)} MiB; peer ` +
    `${peerMemory.idle.toFixed(0)} → ${peerMemory.after.toFixed(0)} MiB`,
)
const stream = await streams()
const { ours, theirs, floors } = await interleaved()

const of = (series: Series, name: string, field: 'per_s' | 'cpu_ms_per_run' | 'ttfe_p50') =>
  median(series[name]!.map(figures => figures[field]))
const ratio = (name: string, field: 'per_s' | 'cpu_ms_per_run' | 'ttfe_p50') =>
  of(ours, name, field) / of(theirs, name, field)
const lost = ours['resume']!.reduce(
  (sum, { resume_bad: bad = 0, bad: failed }) => sum + bad + failed,
  0,
)
const floor = median(floors)
const cpu = of(ours, 'c=32', 'cpu_ms_per_run')
const one = (value: number) =>
  value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)

type Row = readonly [
  what: string,
  ours: string,
  peer: string,
  measured: number,
  unit: string,
  least: number,
  lessIsBetter: boolean,
]
const rows: readonly Row[] = [
  [
    'runs/s at c=32, full sync',
    one(of(ours, 'c=32', 'per_s')),
    one(of(theirs, 'c=32', 'per_s')),
    ratio('c=32', 'per_s'),
    '×',
    10,
    false,
  ],
  [
    'runs/s at c=256',
    one(of(ours, 'c=256', 'per_s')),
    one(of(theirs, 'c=256', 'per_s')),
    ratio('c=256', 'per_s'),
    '×',
    5,
    false,
  ],
  [
    'CPU a run, ms (c=32)',
    one(cpu),
    one(of(theirs, 'c=32', 'cpu_ms_per_run')),
    ratio('c=32', 'cpu_ms_per_run'),
    '×',
    1 / 10,
    true,
  ],
  [
    'first event at c=1, ms',
    one(of(ours, 'c=1', 'ttfe_p50')),
    one(of(theirs, 'c=1', 'ttfe_p50')),
    ratio('c=1', 'ttfe_p50'),
    '×',
    1,
    true,
  ],
  ['resume: lost or repeated events', String(lost), '', lost, '', 0, true],
  [
    'resume: CPU a join, ms',
    one(of(ours, 'resume', 'cpu_ms_per_run')),
    one(of(theirs, 'resume', 'cpu_ms_per_run')),
    ratio('resume', 'cpu_ms_per_run'),
    '×',
    1 / 15,
    true,
  ],
  [
    'resident memory idle, MiB',
    one(ourMemory.idle),
    one(peerMemory.idle),
    ourMemory.idle / peerMemory.idle,
    '×',
    0.7,
    true,
  ],
  [
    'resident memory after 2,000 runs, MiB',
    one(ourMemory.after),
    one(peerMemory.after),
    ourMemory.after / peerMemory.after,
    '×',
    0.5,
    true,
  ],
  ['an idle event stream, 1,000 open, KiB', one(stream), '', stream, ' KiB', 50, true],
  ["CPU a run against SQLite's own writing", one(cpu), one(floor), cpu / floor, '×', 6, true],
]
const table = rows
  .map(([what, mine, peer, measured, unit, least, less]) => {
    const met = less ? measured <= least : measured >= least
    const isPart = least < 1 && least > 0 && least !== 0.7 && least !== 0.5
    const bound = isPart ? `1/${Math.round(1 / least)}` : least
    const goal = `${less ? '≤' : '≥'} ${bound}${unit}`
    const times = measured < 0.4 && measured > 0 ? `1/${(1 / measured).toFixed(1)}` : one(measured)
    return (
      `| ${what} | ${mine} | ${peer} | ${times}${unit} ` + `| ${goal} | ${met ? 'met' : 'MISSED'} |`
    )
  })
  .join('\n')

writeChapter(
  'Benchmark',
  `${circumstances('npm run bench')}: server on one core, client on the other, ` +
    `medians of ${rounds} interleaved rounds.
The work: start a run and read its event stream to the end, 20 tokens without model latency. ` +
    `Ours with everything on: authentication, validation, sessions,
billing, full sync on every commit; only the rate limit is lifted. ` +
    `The peer keeps its data in memory. Machines differ: trust the ratios.

| | this platform | LangGraph JS 2.0.0 (last row: SQLite alone) | ratio | goal | |
|---|---|---|---|---|---|
${table}`,
)

await import('./mongodb.ts')
