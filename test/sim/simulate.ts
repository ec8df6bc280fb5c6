// npm run simulate -- --orders N --seeds N --from S --pairs N: one fault at every moment in so many
// orders, worlds by chance, pairs of faults;
// then whether it finds the faults that are planted into the source.
// Ends with the counts; exit code 1 when anything failed.
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { runMutationTests } from './mutation-tests.ts'
import { bySeed, pairs, singles, told, worlds, type Count, type Failure } from './sweep.ts'

type Share = {
  readonly orders: number
  readonly seeds: number
  readonly from: number
  readonly pairs: number
  readonly worker: number
  readonly workers: number
}
type Report = {
  readonly name: string
  readonly schedules: number
  readonly moves: number
  readonly ms: number
  readonly failures: readonly string[]
}
/** So many failures of a kind are printed; all are counted. */
const printedMax = 5

async function gather(
  name: string,
  failures: (count: Count) => AsyncIterable<Failure>,
): Promise<Report> {
  const count: Count = { schedules: 0, moves: 0 }
  const found: string[] = []
  const started = performance.now()
  for await (const failure of failures(count)) found.push(told(failure))
  return { name, ...count, ms: performance.now() - started, failures: found }
}

async function work({
  orders,
  seeds,
  from,
  pairs: wanted,
  worker,
  workers,
}: Share): Promise<Report[]> {
  const mine = <T>(list: readonly T[]) => list.filter((_, i) => i % workers === worker)
  const calm = worlds([undefined])
  return [
    await gather('one fault', async function* (count) {
      for (const world of mine(worlds([undefined, 1, 2].slice(0, orders))))
        yield* singles(world, count)
    }),
    await gather('seeds', async function* (count) {
      for (let seed = from + worker; seed < from + seeds; seed += workers) {
        const failure = await bySeed(seed, count)
        if (failure) yield failure
      }
    }),
    await gather('two faults', async function* (count) {
      for (const world of mine(calm))
        yield* pairs(world, count, { most: Math.ceil(wanted / calm.length), from })
    }),
  ]
}

if (isMainThread) {
  const { values } = parseArgs({
    options: {
      orders: { type: 'string', default: '3' },
      seeds: { type: 'string', default: '20000' },
      from: { type: 'string', default: '1' },
      pairs: { type: 'string', default: '10000' },
    },
  })
  const workers = Math.min(8, availableParallelism())
  const [orders, seeds, from, wanted] = [
    values.orders,
    values.seeds,
    values.from,
    values.pairs,
  ].map(Number) as [number, number, number, number]
  const shares = await Promise.all(
    Array.from(
      { length: workers },
      (_, worker) =>
        new Promise<Report[]>((resolve, reject) => {
          const share: Share = { orders, seeds, from, pairs: wanted, worker, workers }
          new Worker(new URL(import.meta.url), { workerData: share })
            .on('message', resolve)
            .on('error', reject)
        }),
    ),
  )
  for (const [at, { name }] of shares[0]!.entries()) {
    const parts = shares.map(share => share[at]!)
    const sum = (of: (part: Report) => number) => parts.reduce((total, part) => total + of(part), 0)
    const failures = parts.flatMap(part => part.failures)
    process.stdout.write(
      `${name}: ${sum(part => part.schedules)} schedules, ${sum(part => part.moves)} ` +
        `moves, ${failures.length} failed, ` +
        `${(Math.max(...parts.map(({ ms }) => ms)) / 1000).toFixed(1)} s on ${workers} ` +
        `threads\n`,
    )
    for (const failure of failures.slice(0, printedMax)) process.stdout.write(`${failure}\n`)
    if (failures.length > 0) process.exitCode = 1
  }
  const { planted, missed } = await runMutationTests(workers)
  process.stdout.write(
    `planted faults: ${planted - missed.length} of ${planted} ` +
      `found\n${missed.map(one => `${one}\n`).join('')}`,
  )
  if (missed.length > 0) process.exitCode = 1
} else parentPort!.postMessage(await work(workerData as Share))
