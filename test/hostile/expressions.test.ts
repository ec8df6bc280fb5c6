// Expressions that were made to hang the calculator, or to take all of a machine. Each comes back,
// and the process goes on meanwhile.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { systemClock } from '../../adapters/clock/system.ts'
import { createArithmeticPool } from '../../plugins/tools/arithmetic-pool.ts'

/**
 * A bound for a machine under load; a process that is held up stays so for seconds, or for good.
 */
const heldUpMsMax = 1000
const undo: (() => unknown)[] = []
const reckoner = createArithmeticPool({
  config: {
    calculator_ms: 10_000,
    calculator_threads_max: 2,
    calculator_waiting_max: 1000,
    calculator_memory_mb: 32,
  },
  clock: systemClock(),
  log: () => undefined,
  defer: one => undo.push(one),
})

const nines = '9'.repeat(400)
const nested = (open: string, count: number, inner = '2') =>
  `${open.repeat(count)}${inner}${')'.repeat(count)}`
const hostile: readonly string[] = [
  // Arguments at the edges of what a decimal holds: series that never end.
  ...[
    'asin',
    'acos',
    'atan',
    'sin',
    'cos',
    'tan',
    'exp',
    'ln',
    'log10',
    'log2',
    'sqrt',
    'cbrt',
  ].flatMap(name =>
    ['1e2501', '-1e2501', '1e-4999', '-1e-4999', '1e4999'].map(value => `${name}(${value})`),
  ),
  'atan(1e2501)+atan(1e2502)',
  'atan(atan(1e-4999))',
  'atan(10^4000)',
  'asin(10^-4000)',
  'asin(sin(1e-4999))',
  'atan(1/1e-4000)',
  'tan(atan(1e4999))',
  'atan(factorial(1000))',
  // Towers, and numbers without an end.
  '9^9^9^9^9',
  '2^2^2^2^2^2',
  '1e4999^1e4999',
  '1e-4999^-1e4999',
  '(1+1e-59)^1e59',
  '0.999999999^1e15',
  `${nines}^${nines.slice(0, 80)}`,
  nines,
  `0.${nines}`,
  `1e${nines}`,
  `1e-${nines}`,
  `${nines}%0.${'1'.repeat(90)}`,
  '1e4999%1e-4999',
  '1e4999%3',
  'log(1e4999, 1+1e-59)',
  // Much of everything.
  nested('factorial(', 12, '3'),
  nested('sqrt(', 80),
  nested('exp(', 80),
  nested('sin(', 90),
  nested('atan(', 80, '1e2501'),
  nested('(', 240),
  '('.repeat(500),
  ')'.repeat(500),
  '-'.repeat(499),
  '1+'.repeat(249),
  '2^'.repeat(249) + '2',
  `sum(${'factorial(1000),'.repeat(30)}1)`,
  `factorial(1000)${'*factorial(1000)'.repeat(30)}`,
  `mean(${'ln(7),'.repeat(70)}1)`,
  ','.repeat(500),
  '.'.repeat(500),
  ' '.repeat(500),
  // What is no arithmetic.
  '\u0000',
  '\ud800',
  '\u0301'.repeat(500),
  '٣+٤',
  '１+１',
  '\u202e1+1',
  '👨‍👩‍👧‍👦',
  '`${1}`',
  '[[[[1]]]]',
  '{"a":1}',
  'constructor.constructor("return process")()',
  '__proto__',
  '"'.repeat(499),
  '/*'.repeat(250),
  '\\u0031'.repeat(80),
  '𝟏+𝟏',
]

test('each comes back with a number or a refusal, and the process is never held up', async () => {
  assert.ok(hostile.length >= 100)
  assert.equal(
    hostile.filter(({ length }) => length > 500),
    [],
    'the tool takes no more',
  )
  const delay = monitorEventLoopDelay({ resolution: 10 })
  delay.enable()
  const outcomes = await Promise.all(
    hostile.map((expression, at) =>
      reckoner
        .reckon(expression, { userId: `user ${at % 7}`, signal: new AbortController().signal })
        .catch((error: Error & { code?: string }) => error),
    ),
  )
  delay.disable()
  for (const [at, outcome] of outcomes.entries())
    assert.ok(
      typeof outcome === 'string'
        ? /^-?[\de.+-]+$/.test(outcome)
        : (outcome as { code?: string }).code === 'INVALID_FIELD',
      `${hostile[at]!.slice(0, 60)}: ${outcome}`,
    )
  assert.equal(
    hostile.filter((_, at) => /takes longer/.test(String(outcomes[at]))),
    [],
    'none of them takes long any more',
  )
  assert.ok(
    delay.max / 1e6 < heldUpMsMax,
    `the process stood still for ${Math.round(delay.max / 1e6)} ms`,
  )
})

test.after(async () => void (await Promise.all(undo.map(one => one()))))
test.run()
