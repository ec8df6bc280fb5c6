// The same work with documents, events and ledger in MongoDB, and in SQLite beside it, interleaved:
// what the binding costs.
//   npm run bench:mongodb on the server that MONGODB_URL names, else on a MongoDB-compatible one
//   that is started here
import { startMongo } from '../servers/mongodb.ts'
import { circumstances, writeChapter } from './report.ts'
import { measure, residentMiB, startProduct, type Figures, type Target } from './servers.ts'

const rounds = 3
const samples = {
  'runs/s, 32 clients': { mode: 'twostep', c: 32, n: 320 },
  'first event, 1 client': { mode: 'twostep', c: 1, n: 60 },
  'joins/s, 32 clients': { mode: 'resume', c: 32, n: 640 },
} as const
const median = (list: readonly number[]) =>
  list.toSorted((a, b) => a - b)[Math.floor(list.length / 2)]!
const given = process.env['MONGODB_URL']
const own = given === undefined ? await startMongo() : undefined
if (own && 'why' in own) {
  process.stdout.write(`There is no MongoDB: ${own.why}\n`)
  process.exit(1)
}
const url = new URL(given ?? own!.url)
url.pathname = `/bench_${Date.now()}`

const taken: Record<string, Record<string, Figures[]>> = { mongodb: {}, sqlite: {} }
const resident: Record<string, number> = {}
for (let round = 0; round < rounds; round++)
  for (const [name, settings] of [
    ['mongodb', { STORAGE_URL: url.href }],
    ['sqlite', {}],
  ] as const) {
    const target: Target = await startProduct(settings)
    measure(target, 'twostep', 8, 40)
    for (const [what, { mode, c, n }] of Object.entries(samples)) {
      const figures = measure(target, mode, c, n)
      ;(taken[name]![what] ??= []).push(figures)
      process.stdout.write(
        `round ${round + 1} ${name} ${what}: ${figures.per_s}/s, ${figures.cpu_ms_per_run} ` +
          `ms CPU, bad ${figures.bad}\n`,
      )
    }
    resident[name] = residentMiB(target.pids)
    await target.stop()
  }
await own?.stop()

const of = (name: string, what: string, field: 'per_s' | 'cpu_ms_per_run' | 'ttfe_p50') =>
  median(taken[name]![what]!.map(figures => figures[field]))
const lost = Object.values(taken)
  .flatMap(Object.values)
  .flat(2)
  .reduce((sum: number, { bad, resume_bad: more = 0 }: Figures) => sum + bad + more, 0)
const row = (what: string, field: 'per_s' | 'cpu_ms_per_run' | 'ttfe_p50', sample: string) =>
  `| ${what} | ${of('mongodb', sample, field).toFixed(1)} | ` +
  `${of('sqlite', sample, field).toFixed(1)} |`
const also =
  given === undefined
    ? ' and a MongoDB-compatible server (SecantusDB 0.7.0b3, whose wire protocol is Python; ' +
      'not MongoDB)'
    : ''
const memory = (name: string) => resident[name]!.toFixed(0)
writeChapter(
  'The MongoDB binding',
  `${circumstances('npm run bench:mongodb')}, medians of ${rounds} interleaved rounds, ` +
    `platform on one core, client${also} on what is left.
What the server itself takes is most of it: compare the CPU, which is the platform's own. ` +
    `Lost or repeated events: ${lost}.

| | MongoDB-compatible server | SQLite |
|---|---|---|
${row('runs/s at c=32', 'per_s', 'runs/s, 32 clients')}
${row("the platform's CPU a run, ms (c=32)", 'cpu_ms_per_run', 'runs/s, 32 clients')}
${row('first event at c=1, ms', 'ttfe_p50', 'first event, 1 client')}
${row('joins/s at c=32', 'per_s', 'joins/s, 32 clients')}
| resident memory afterwards, MiB | ${memory('mongodb')} | ${memory('sqlite')} |`,
)
