// Runs test files, several side by side, and ends with the sum.
//   npm test                    every test; minutes
//   npm test -- runs/engine     the tests whose path has one of these parts; a proof, too, if named
//   npm test -- --changed       the tests that reach what differs from the last commit
//   npm test -- --changed=main  … from this commit
//   npm test -- --timings       and where the time went
//   npm test -- --lanes 1       in one process, but for those that want their own
//   npm run test:all            tests and proofs
import { availableParallelism } from 'node:os'
import { parseArgs } from 'node:util'
import { overBudget } from './runner/budgets.ts'
import { changedSince, reaching, testFiles, type TestFile } from './runner/files.ts'
import { runFiles, type Result } from './runner/pool.ts'
import { scaledSecond } from './runner/scale.ts'
import { timingsOf } from './runner/timings.ts'

/** Some wait while others work; beside servers, which work too, there is no room for a third. */
const lanesUsual = process.env['MONGODB_URL'] === undefined ? availableParallelism() + 1 : 2

const args = process.argv.slice(2).map(arg => (arg === '--changed' ? '--changed=HEAD' : arg))
const { values: asked, positionals: parts } = parseArgs({
  args,
  allowPositionals: true,
  options: {
    all: { type: 'boolean' },
    lanes: { type: 'string' },
    changed: { type: 'string' },
    timings: { type: 'boolean' },
  },
})
const say = (text: string) => process.stdout.write(`${text}\n`)

const unknown: string[] = []
function chosen(): TestFile[] {
  const files = testFiles()
  const usual = ({ kind }: TestFile) => asked.all || kind === 'test'
  const named = new Set(parts.length === 0 ? files.filter(usual) : [])
  for (const part of parts) {
    const wanted = files.filter(({ file }) => file.includes(part))
    if (wanted.length === 0) unknown.push(part)
    // Who names a proof means it.
    for (const file of wanted.some(usual) ? wanted.filter(usual) : wanted) named.add(file)
  }
  const all = files.filter(file => named.has(file))
  return asked.changed === undefined ? all : reaching(all, changedSince(asked.changed))
}

const results: Result[] = []
// What is long and alone is begun with.
const files = chosen().toSorted((a, b) => Number(b.ownProcess) - Number(a.ownProcess))
await runFiles(files, Math.min(Number(asked.lanes ?? lanesUsual), files.length), result => {
  const { file, passed, failed, skipped, ms, output } = result
  results.push(result)
  say(
    `${failed === 0 ? 'ok  ' : 'FAIL'} ${file} ${passed} ` +
      `passed${skipped ? `, ${skipped} skipped` : ''} (${(ms / 1000).toFixed(1)} s)`,
  )
  if (failed > 0) say(output)
})
// Both measure alike, so that what exceeds a budget is found in the timings by the same figure.
const scale = scaledSecond()
if (asked.timings) say(timingsOf(results, scale).join('\n'))

// The budgets are those of `npm test`: beside servers and proofs the same work takes more.
const over = asked.all || parts.length > 0 ? [] : overBudget(results, files, scale)
for (const sentence of over) say(`FAIL ${sentence}`)
if (results.length === 0) unknown.push('')
for (const part of unknown) say(`There is no such test file${part ? `: ${part}` : ''}.`)
const sum = (part: 'passed' | 'failed' | 'skipped') =>
  results.reduce((total, result) => total + result[part], 0)
const failed = sum('failed') + over.length + unknown.length
const skipped = sum('skipped')
say(`\n${sum('passed')} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exitCode = failed === 0 ? 0 : 1
