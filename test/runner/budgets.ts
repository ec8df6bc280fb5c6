// What the tests may cost, in CPU, so that they stay quick when there is four times as much code.
import type { TestFile } from './files.ts'
import type { Result } from './pool.ts'
import { folderOf } from './timings.ts'

/** Scaled seconds of CPU. */
const fileMax = 7
const pluginMax = 8
/** The engine is many capabilities in one; each password costs 30 ms of Argon2. */
const pluginsMax: Readonly<Record<string, number>> = {
  'plugins/runs': 20,
  'plugins/identity': 12,
}
const allMax = 400
/** One sentence for each budget that was exceeded; `scale` is what `scaledSecond` measured. */
export function overBudget(
  results: readonly Result[],
  files: readonly TestFile[],
  scale: number,
): string[] {
  const tests = new Set(files.filter(({ kind }) => kind === 'test').map(({ file }) => file))
  const counted = results.filter(({ file }) => tests.has(file))
  const folders = new Map<string, number>()
  for (const { file, cpuMs } of counted)
    if (file.startsWith('plugins/'))
      folders.set(folderOf(file), (folders.get(folderOf(file)) ?? 0) + cpuMs)
  const all = counted.reduce((total, { bootMs, cpuMs }) => total + bootMs + cpuMs, 0)
  const sentence = (what: string, ms: number, max: number) =>
    ms / 1000 > max * scale
      ? [`${what} took ${(ms / 1000 / scale).toFixed(1)} scaled seconds; its budget is ${max}`]
      : []
  return [
    ...counted.flatMap(({ file, cpuMs }) => sentence(file, cpuMs, fileMax)),
    ...[...folders].flatMap(([folder, ms]) =>
      sentence(folder, ms, pluginsMax[folder] ?? pluginMax),
    ),
    ...sentence('The tests together', all, allMax),
  ]
}
