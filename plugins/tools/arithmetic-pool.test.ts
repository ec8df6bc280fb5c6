// Threads that reckon: their limits of time and number, and their end.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { systemClock } from '../../adapters/clock/system.ts'
import { arithmeticPools } from '../../test/support/arithmetic.ts'

const { undo, reckonerOf } = arithmeticPools()

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
