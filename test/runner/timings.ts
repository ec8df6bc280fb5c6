// Where the time of the tests went.
import type { Result } from './pool.ts'

const seconds = (ms: number) => (ms / 1000).toFixed(1).padStart(7)
const sum = (results: readonly Result[], of: (result: Result) => number) =>
  results.reduce((total, result) => total + of(result), 0)
const sleepingMs = ({ ms, cpuMs }: Result) => Math.max(0, ms - cpuMs)

/** A plugin's folder, a port's among the adapters, or a folder of the tests. */
export const folderOf = (file: string) => file.split('/').slice(0, 2).join('/')

function byFolder(results: readonly Result[]): [folder: string, cpuMs: number][] {
  const folders = new Map<string, number>()
  for (const { file, cpuMs } of results)
    folders.set(folderOf(file), (folders.get(folderOf(file)) ?? 0) + cpuMs)
  return [...folders].sort(([, a], [, b]) => b - a)
}

/**
 * The twenty slowest files, the sum by kind and the CPU of each folder, as lines. CPU is told in
 * the unit of the budgets; `scale` is what `scaledSecond` measured.
 */
export function timingsOf(results: readonly Result[], scale: number): string[] {
  const scaled = (cpuMs: number) => seconds(cpuMs / scale)
  const slowest = results.toSorted((a, b) => b.cpuMs - a.cpuMs).slice(0, 20)
  const starting = sum(results, ({ bootMs, startMs }) => bootMs + startMs)
  const working = sum(results, ({ cpuMs, startMs }) => cpuMs - startMs)
  return [
    '',
    'CPU is in scaled seconds, as the budgets are (test/runner/scale.ts).',
    `A scaled second is ${scale.toFixed(2)} seconds of CPU on this machine now.`,
    '',
    'The twenty files that took most CPU: scaled seconds of CPU, seconds that they waited',
    ...slowest.map(
      result => `${scaled(result.cpuMs)} ${seconds(sleepingMs(result))}  ${result.file}`,
    ),
    '',
    'CPU of all files by kind: scaled seconds',
    `${scaled(starting)}  start-up: processes, imports, what files open first`,
    `${scaled(working)}  working`,
    `${scaled(starting + working)}  together`,
    '',
    'All files waited: seconds',
    `${seconds(sum(results, sleepingMs))}  for timers, sockets, other processes`,
    '',
    'CPU by folder: scaled seconds',
    ...byFolder(results).map(([folder, cpuMs]) => `${scaled(cpuMs)}  ${folder}`),
  ]
}
