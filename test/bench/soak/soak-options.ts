// What `npm run soak` is asked for: its options, each with a default.
import { parseArgs } from 'node:util'

const help =
  'npm run soak -- [--minutes 10] [--idle 10000] [--busy 1000] [--tokens 40] [--interval 250]\n' +
  `
  --minutes   how long, once everything is open
  --idle      event streams of runs that wait for an answer of their user, which comes at the end
  --busy      runs under way at any time, each followed by a reader; a new one starts when one ends
  --tokens    of a busy run's answer
  --interval  milliseconds before each token

Prints a line every ten seconds, writes the chapter "Soak" of test/bench/REPORT.md, and ends ` +
  'with 1 where something does not hold.\n'
const names = ['minutes', 'idle', 'busy', 'tokens', 'interval'] as const
const fallbacks = [10, 10_000, 1000, 40, 250]
const { values } = parseArgs({
  options: {
    ...Object.fromEntries(
      names.map((name, i) => [name, { type: 'string' as const, default: String(fallbacks[i]) }]),
    ),
    help: { type: 'boolean', default: false },
  },
})
const given = values as Readonly<Record<string, string | boolean>>
if (given['help']) {
  process.stdout.write(help)
  process.exit(0)
}
export function fail(why: string): never {
  process.stderr.write(`${why}\n`)
  process.exit(1)
}
export const [minutes, idle, busy, tokens, intervalMs] = names.map(name =>
  Number(given[name]) > 0 ? Number(given[name]) : fail(`--${name} must be a number above 0.`),
) as [number, number, number, number, number]
/** What was asked for, written out. */
export const command = `npm run soak -- ${names.map(name => `--${name} ${given[name]}`).join(' ')}`
