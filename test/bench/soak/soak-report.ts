// The chapter "Soak" of the report: what was measured, and whether what must hold did.
import { circumstances, writeChapter } from '../report.ts'
import type { First } from '../load.ts'
import { MiB, percentile, type Memory, type Rest, type Row } from '../verdict.ts'
import { busy, command, idle, intervalMs, tokens } from './soak-options.ts'

export const mib = (bytes: number, digits = 0): string => (bytes / MiB).toFixed(digits)

export type Measured = {
  readonly seconds: number
  readonly runs: number
  readonly events: number
  readonly cpuSeconds: number
  readonly before: Rest
  readonly after: Rest
  readonly samples: readonly Memory[]
  /** Milliseconds of the event loop, of ten seconds each. */
  readonly lags: readonly number[]
  /** When a measurement stopped the server. */
  readonly stops: readonly { readonly from: number; readonly to: number }[]
  readonly firsts: readonly First[]
  /** Milliseconds of those first events that no measurement delayed. */
  readonly undisturbed: readonly number[]
  readonly rows: readonly Row[]
}

export function writeSoak(whole: Measured): void {
  const { seconds, runs, events, cpuSeconds, before, after } = whole
  const { samples, lags, stops, firsts, undisturbed, rows } = whole
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
  const undelayed = of(undisturbed, 0.5, 0.99, 1)
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
| the server's CPU | ${((100 * cpuSeconds) / seconds).toFixed(0)} % of a core |
| resident, MiB: before the load, most, after it | ${residents} |
| heap after collection, MiB: before the load, most, after it | ${heaps} |
| a stream, KiB, with its run: resident, heap | ${streams} |

Memory was measured ${samples.length} times, each after a forced collection of garbage; ` +
      `each of these stopped the server, for ${stopped} ms.

| what must hold | measured | rule | |
|---|---|---|---|
${kept.join('\n')}`,
  )
}
