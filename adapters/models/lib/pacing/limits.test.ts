// The limits that a provider reports, and the queue of calls before it.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fault, hasCode } from '#contracts/faults.ts'
import { createSemaphore } from './semaphore.ts'
import { retryAfterOf } from './rate-limits.ts'

const now = Date.UTC(2030, 0, 1)
const waits = (headers: Record<string, string>) =>
  retryAfterOf(new Headers(headers), { now: () => now })

test('Retry-After counts seconds or names a date; retry-after-ms is more exact', () => {
  assert.is(waits({ 'retry-after': '3' }), 3000)
  assert.is(waits({ 'retry-after': '0.25' }), 250)
  assert.is(waits({ 'retry-after': 'Tue, 01 Jan 2030 00:00:07 GMT' }), 7000)
  assert.is(waits({ 'retry-after': 'Mon, 31 Dec 2029 00:00:00 GMT' }), 0)
  assert.is(waits({ 'retry-after': '3', 'retry-after-ms': '120' }), 120)
  assert.is(waits({ 'retry-after': 'soon', 'retry-after-ms': '-1' }), undefined)
})
test('the resets of what is used up are waited for, not those of what is left', () => {
  assert.is(
    waits({ 'x-ratelimit-reset-requests': '1s', 'x-ratelimit-reset-tokens': '6m0s' }),
    360_000,
  )
  assert.is(
    waits({
      'x-ratelimit-reset-requests': '1.5s',
      'x-ratelimit-remaining-requests': '0',
      'x-ratelimit-reset-tokens': '6m0s',
      'x-ratelimit-remaining-tokens': '149984',
    }),
    1500,
  )
  assert.is(waits({ 'x-ratelimit-reset-tokens': '120ms' }), 120)
  assert.is(
    waits({
      'anthropic-ratelimit-input-tokens-reset': '2030-01-01T00:00:30Z',
      'anthropic-ratelimit-input-tokens-remaining': '0',
      'anthropic-ratelimit-requests-reset': '2030-01-01T01:00:00Z',
      'anthropic-ratelimit-requests-remaining': '12',
    }),
    30_000,
  )
  assert.is(waits({ 'retry-after': '2', 'x-ratelimit-reset-tokens': '6m0s' }), 2000)
  assert.is(waits({ 'x-ratelimit-reset-tokens': 'later' }), undefined)
  assert.is(waits({}), undefined)
})
test("nobody waits longer than an hour on a provider's word", () => {
  assert.is(waits({ 'retry-after': '99999999999' }), 3_600_000)
  assert.is(waits({ 'retry-after': '9'.repeat(400) }), undefined)
  assert.is(waits({ 'x-ratelimit-reset-requests': '3d' }), 3_600_000)
})
test('a full line refuses at once; a place given back twice is one place', async () => {
  const line = createSemaphore({
    permits: 1,
    waitingMax: 1,
    refuse: () => fault('MODEL_FAILED', { why: 'full' }, { retryAfterMs: 1000 }),
  })
  const { signal } = new AbortController()
  const leave = await line.acquire(signal)
  let entered = false
  const waiting = line.acquire(signal).then(left => {
    entered = true
    return left
  })
  const refused = await line.acquire(signal).catch((error: unknown) => error)
  assert.ok(hasCode(refused, 'MODEL_FAILED') && refused.retryAfterMs === 1000)
  assert.is(entered, false)
  leave()
  leave()
  await waiting
  const controller = new AbortController()
  const next = line.acquire(controller.signal)
  controller.abort('gone')
  assert.is(await next.catch((error: unknown) => error), 'gone')
  ;(await waiting)()
  ;(await line.acquire(signal))()
  assert.is(await line.acquire(AbortSignal.abort('gone')).catch((error: unknown) => error), 'gone')
})
test.run()
