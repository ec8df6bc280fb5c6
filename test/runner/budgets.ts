// What the tests may cost, in CPU, so that they stay quick when there is four times as much code.
import type { TestFile } from './files.ts'
import type { Result } from './pool.ts'
import { folderOf } from './timings.ts'

/** Seconds of CPU on the machine that `unitMs` was measured on. */
const fileMax = 7
const pluginMax = 8
/** The engine is many capabilities in one; each password costs 30 ms of Argon2. */
const pluginsMax: Readonly<Record<string, number>> = {
  'plugins/runs': 20,
  'plugins/identity': 12,
}
const allMax = 400
/** What `unit()` took there. */
const unitMs = 200
/** Two runs on one machine differ by less. */
const tolerance = 1.5

/** How many times longer this machine takes for a piece of work that is always the same. */
function pace(): number {
  const unit = () => {
    const { user } = process.cpuUsage()
    let state = 1
    const seen = new Map<number, string>()
    for (let i = 0; i < 2_000_000; i++) {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
      seen.set(state % 10_000, `${state}`)
    }
    return (process.cpuUsage().user - user) / 1000
  }
  return Math.max(1, Math.min(unit(), unit(), unit()) / unitMs)
}

/** One sentence for each budget that was exceeded. */
export function overBudget(results: readonly Result[], files: readonly TestFile[]): string[] {
  const scale = pace() * tolerance
  const tests = new Set(files.filter(({ kind }) => kind === 'test').map(({ file }) => file))
  const counted = results.filter(({ file }) => tests.has(file))
  const folders = new Map<string, number>()
  for (const { file, cpuMs } of counted)
    if (file.startsWith('plugins/'))
      folders.set(folderOf(file), (folders.get(folderOf(file)) ?? 0) + cpuMs)
  const all = counted.reduce((total, { bootMs, cpuMs }) => total + bootMs + cpuMs, 0)
  const sentence = (what: string, ms: number, max: number) =>
    ms / 1000 > max * scale
      ? [`${what} took ${(ms / 1000 / scale).toFixed(1)} s of CPU; its budget is ${max} s`]
      : []
  return [
    ...counted.flatMap(({ file, cpuMs }) => sentence(file, cpuMs, fileMax)),
    ...[...folders].flatMap(([folder, ms]) =>
      sentence(folder, ms, pluginsMax[folder] ?? pluginMax),
    ),
    ...sentence('The tests together', all, allMax),
  ]
}
