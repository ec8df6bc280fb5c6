// Work is waited for no longer than a time, and the wait leaves no timer behind.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { manualClock } from '#adapters/clock/manual.ts'
import { atMost } from './deadline.ts'

const never = new Promise<string>(() => undefined)

test('the wait settles as its work does, and its sleep ends with it', async () => {
  const clock = manualClock()
  assert.is(await atMost(clock, 10, Promise.resolve('done'), () => 'late'), 'done')
  const failed = atMost(clock, 10, Promise.reject(new Error('broken')), () => 'late')
  assert.is(await failed.catch((error: Error) => error.message), 'broken')
  assert.is(clock.sleeping(), 0)
})

test('work that is late is answered for, by a value or by an error', async () => {
  const clock = manualClock()
  const answered = atMost(clock, 10, never, () => 'late')
  const refused = atMost(clock, 10, never, () => {
    throw new Error('too late')
  })
  const told = refused.catch((error: Error) => error.message)
  await clock.advance(10)
  assert.equal([await answered, await told], ['late', 'too late'])
})

test('a signal ends the wait before its time, with the reason of the signal', async () => {
  const clock = manualClock()
  const stopping = new AbortController()
  const waited = atMost(clock, 10, never, () => 'late', stopping.signal)
  stopping.abort(new Error('it is being stopped'))
  assert.is(await waited.catch((error: Error) => error.message), 'it is being stopped')
  assert.is(clock.sleeping(), 0)
})

test.run()
