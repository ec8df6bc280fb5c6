import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isFault } from '#kernel'
import { createValidator } from '../../kernel/validation/validate.ts'
import { evaluate, functionNames } from './arithmetic.ts'
import { systemClock } from '../../adapters/clock/system.ts'
import { calculator as calculatorOf } from './calculator.ts'
import { createArithmeticPool } from './arithmetic-pool.ts'

const undo: (() => unknown)[] = []
const reckonerOf = (more: object = {}, clock = systemClock()) =>
  createArithmeticPool({
    config: {
      calculator_ms: 5000,
      calculator_threads_max: 2,
      calculator_waiting_max: 100,
      calculator_memory_mb: 32,
      ...more,
    },
    clock,
    log: () => undefined,
    defer: one => undo.push(one),
  })
const calculator = calculatorOf({ arithmetic: reckonerOf() })

const refusal = (expression: string) => {
  try {
    return evaluate(expression)
  } catch (error) {
    return isFault(error) ? error.message : `not a fault: ${error}`
  }
}
const all = (rows: readonly (readonly [string, string])[]) => {
  for (const [expression, result] of rows) assert.is(refusal(expression), result, expression)
}

test('decimals are exact, and what rounding leaves is not shown', () =>
  all([
    ['0.1+0.2', '0.3'],
    ['0.1*3', '0.3'],
    ['1.10-1.00', '0.1'],
    ['4.35*100', '435'],
    ['1/3*3', '1'],
    ['1/3', '0.33333333333333333333'],
    ['sqrt(2)^2', '2'],
    ['2^100', '1267650600228229401496703205376'],
    ['12345678901234567890+1', '12345678901234567891'],
    ['(1299.90 * 3 - 50) / 1.19', '3235.0420168067226891'],
    ['.5+5.', '5.5'],
    ['1e3', '1000'],
    ['1.5e-3', '0.0015'],
    ['-0', '0'],
    ['1e-30', '1e-30'],
    ['2^300', '2.0370359763344860863e+90'],
  ]))
test('operators bind as in school', () =>
  all([
    ['1+2*3', '7'],
    ['(1+2)*3', '9'],
    ['2^3^2', '512'],
    ['-2^2', '-4'],
    ['(-2)^2', '4'],
    ['((-2))^2', '4'],
    ['- (2)^2', '-4'],
    ['--2^2', '4'],
    ['2^-1', '0.5'],
    ['2**3', '8'],
    ['10%3', '1'],
    ['-7%3', '-1'],
    ['8/4/2', '1'],
    ['2-3-4', '-5'],
    ['6÷2×3−1', '8'],
    ['+5', '5'],
    ['((((1))))', '1'],
    ['abs (-3)', '3'],
    ['2 * (3 + 4) * (5 - 6)', '-14'],
  ]))
test('every function and constant', () => {
  all([
    ['abs(-2)', '2'],
    ['sqrt(144)', '12'],
    ['cbrt(27)', '3'],
    ['exp(0)', '1'],
    ['ln(e)', '1'],
    ['log10(1000)', '3'],
    ['log2(8)', '3'],
    ['log(81, 3)', '4'],
    ['floor(-1.5)', '-2'],
    ['ceil(1.2)', '2'],
    ['trunc(-1.9)', '-1'],
    ['round(2.5)', '3'],
    ['round(2/3, 4)', '0.6667'],
    ['round(1250, -2)', '1300'],
    ['sin(0)', '0'],
    ['cos(pi)', '-1'],
    ['tan(0)', '0'],
    ['asin(1)*2', '3.1415926535897932385'],
    ['acos(1)', '0'],
    ['atan(0)', '0'],
    ['sin(pi/6)', '0.5'],
    ['min(3, 1, 2)', '1'],
    ['max(3, 1, 2)', '3'],
    ['sum(1, 2, 3)', '6'],
    ['mean(1, 2, 6)', '3'],
    ['factorial(20)', '2432902008176640000'],
    ['factorial(0)', '1'],
    ['pi', '3.1415926535897932385'],
  ])
  for (const name of functionNames)
    assert.match(calculator.description, new RegExp(`\\b${name}\\b`), `the model knows ${name}`)
})

const word = /^expression: /
test('what is not arithmetic is refused in words', () => {
  for (const expression of [
    '',
    ' ',
    '1,000',
    '1 2',
    '2(3)',
    '5!',
    '10%',
    'x',
    'a=1',
    '1=1',
    '1==1',
    '1<2',
    '!1',
    '~1',
    '1|2',
    '1&&2',
    '1?2:3',
    '"a"',
    "'a'+'b'",
    '`a`',
    '[1,2]',
    '{}',
    'true',
    'null',
    'this',
    '1;2',
    'x.y',
    '(1).x',
    '1[0]',
    'sqrt',
    'pi(1)',
    'sqrt()',
    'sqrt(1,2)',
    'log(2)',
    'round(1,2,3)',
    'min()',
    'sqrt(1)(2)',
    '1_000',
    '0x10',
    '1e',
    '(',
    ')',
    '1+',
    '*1',
    'f(',
    'sqrt(1',
    '∞',
    '１',
    '1/0',
    '0/0',
    'sqrt(-1)',
    'ln(0)',
    'ln(-1)',
    'acos(2)',
    'round(1, 0.5)',
    'round(1, 99)',
    'tan(1e16)',
  ]) {
    const told = refusal(expression)
    assert.match(told, word, `${expression}: ${told}`)
  }
})
test('nothing of the host is in reach', () => {
  for (const expression of [
    'process',
    'globalThis',
    'constructor',
    '__proto__',
    'toString()',
    'constructor("x")',
    'sqrt.constructor("x")()',
    '(1).constructor',
    'this.process',
    'require("fs")',
    'import("fs")',
    'eval(1)',
    'hasOwnProperty(1)',
    'valueOf()',
    '_.constructor',
    'get(1)',
    'abs`1`',
  ])
    assert.match(refusal(expression), word, expression)
})
test('nothing takes long: the largest of everything has an end', () => {
  for (const expression of [
    '9^9^9^9',
    '9^9^9',
    '2^-999999999999',
    '(1+1e-9)^1e15',
    '0.5^0.000000001',
    'factorial(1000)',
    'factorial(1001)',
    'factorial(1e9)',
    'factorial(-1)',
    'factorial(2.5)',
    'exp(1e9)',
    'exp(-1e9)',
    'ln(1e4999)',
    'sin(1e15)',
    'sin(1e400)',
    'cos(-1e15)',
    '1e5000*10',
    '1e-5000/10',
    `${'('.repeat(249)}1${')'.repeat(249)}`,
    '('.repeat(500),
    '-'.repeat(499) + '1',
    '2^'.repeat(249) + '2',
    'sqrt('.repeat(80) + '2' + ')'.repeat(80),
    '1+'.repeat(249) + '1',
    '9'.repeat(500),
    `1e${'9'.repeat(498)}`,
    `factorial(1000)${'*factorial(1000)'.repeat(30)}`,
  ]) {
    assert.ok(expression.length <= 500)
    const told = refusal(expression)
    assert.not.match(told, 'not a fault', `${expression.slice(0, 40)}: ${told}`)
  }
  assert.match(refusal('9^9^9'), 'no finite result')
  assert.match(refusal('factorial(1000)'), /^4\.0238726007709377354e\+2567$/)
})

test('its arguments are one expression of bounded length', async () => {
  const check = createValidator().check('body', calculator.parameters)
  for (const args of [
    {},
    { expression: 1 },
    { expression: '' },
    { expression: '1'.repeat(501) },
    { expression: '1', more: 1 },
    '1',
  ])
    assert.throws(
      () => check(args),
      (error: Error) => /expression|more|body/.test(error.message),
    )
  assert.equal(
    await calculator.run(
      check({ expression: '0.1+0.2' }) as never,
      { userId: 'ann', signal: new AbortController().signal } as never,
    ),
    { content: '0.3' },
  )
  assert.is(calculator.effect, 'none')
})

test('arcs far away and close to nothing are told without a series', () =>
  all([
    ['atan(1e2501)*2', '3.1415926535897932385'],
    ['atan(-1e4999)*2', '-3.1415926535897932385'],
    ['atan(1e-4999)', '1e-4999'],
    ['asin(1e-4999)', '1e-4999'],
    ['asin(-1e-61)', '-1e-61'],
    ['atan(1e61)*2', '3.1415926535897932385'],
    ['tan(atan(12345))', '12345'],
  ]))

const forAnn = { userId: 'ann', signal: new AbortController().signal }
const forBob = { ...forAnn, userId: 'bob' }
/** Far more than one thread does in the limits below. */
const slow = `ln(1.1)${'+ln(1.1)^0.5'.repeat(40)}`
const told = (promise: Promise<string>) => promise.catch((error: Error) => error.message)
test('what takes too long ends its thread, and the next finds another', async () => {
  const arithmetic = reckonerOf({ calculator_ms: 10, calculator_threads_max: 1 })
  assert.is(await told(arithmetic.reckon(slow, forAnn)), 'expression: takes longer than 10 ms.')
  const patient = reckonerOf({ calculator_threads_max: 1 })
  assert.match(await told(patient.reckon('1/0', forAnn)), 'no finite result')
  assert.is(await patient.reckon('6*7', forAnn), '42')
})
test('one user has all threads but one; who leaves or finds the line full is told', async () => {
  const arithmetic = reckonerOf({ calculator_waiting_max: 2 })
  const leaving = new AbortController()
  const order: string[] = []
  const ours = [
    arithmetic.reckon(slow, forAnn).then(() => order.push('ann')),
    arithmetic.reckon(slow, forAnn).then(() => order.push('ann')),
  ]
  const theirs = arithmetic.reckon('1+1', forBob).then(() => order.push('bob'))
  const left = told(arithmetic.reckon('1+1', { ...forAnn, signal: leaving.signal }))
  assert.match(await told(arithmetic.reckon('1+1', forBob)), 'at its capacity')
  leaving.abort(new Error('left'))
  assert.is(await left, 'left')
  await Promise.all([...ours, theirs])
  assert.is(order.indexOf('bob') < 2, true, order.join())
})
test('an undone reckoner ends its threads and refuses', async () => {
  const arithmetic = reckonerOf()
  const under = told(arithmetic.reckon(slow, forAnn))
  await Promise.all(undo.splice(0).map(one => one()))
  assert.match(await under, 'not available')
  assert.match(await told(arithmetic.reckon('1', forAnn)), 'stopping')
})

test('the standstill of a stopped process is not taken for a slow expression', async () => {
  const clock = systemClock()
  let naps = 0
  // The first part of each limit is over at once, as it is when a stopped process goes on.
  const stopped = {
    ...clock,
    sleep: (ms: number, signal?: AbortSignal) =>
      naps++ < 2 ? Promise.resolve() : clock.sleep(ms, signal),
  }
  const arithmetic = reckonerOf({}, stopped)
  assert.is(await arithmetic.reckon('6 * 7', forAnn), '42')
  assert.ok(naps >= 2)
})

test.run()
