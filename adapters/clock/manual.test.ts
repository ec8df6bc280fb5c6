import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { clockKit } from '../../test/conformance/clock.ts'
import { opening } from '../../test/conformance/opening.ts'
import manual, { manualClock, type ManualClock } from './manual.ts'

clockKit(test, 'manual', {
  open: async () => manualClock(),
  pass: (clock, ms) => (clock as ManualClock).advance(ms),
})

test('time stands still until it is told to move', async () => {
  const clock = manualClock(1_000)
  let woke = false
  void clock.sleep(10).then(() => {
    woke = true
  })
  await clock.advance(9)
  assert.is(woke, false)
  assert.is(clock.sleeping(), 1)
  await clock.advance(1)
  assert.is(woke, true)
  assert.is(clock.now(), 1_010)
})
test('who wakes and sleeps again within the span is woken again at its own moment', async () => {
  const clock = manualClock(0)
  const moments: number[] = []
  void (async () => {
    for (let turn = 0; turn < 3; turn++) {
      await clock.sleep(10)
      moments.push(clock.now())
    }
  })()
  await clock.advance(35)
  assert.equal(moments, [10, 20, 30])
  assert.is(clock.now(), 35)
})
test('a leap wakes whoever is due once, at its end', async () => {
  const clock = manualClock(0)
  const moments: number[] = []
  void (async () => {
    for (;;) {
      await clock.sleep(10)
      moments.push(clock.now())
    }
  })()
  await clock.leap(1000)
  assert.equal(moments, [1000])
})
test('the same seed gives the same ids and the same randomness; another seed gives others', () => {
  const draw = (seed: number) => {
    const clock = manualClock(0, { seed })
    return [clock.id(), clock.id(), clock.random(), ...clock.randomBytes(8)]
  }
  assert.equal(draw(1), draw(1))
  assert.not.equal(draw(1), draw(2))
})
test('the URL names the start and the seed', async () => {
  const clock = await manual.open(opening('manual:?start=5000&seed=7', { clock: manualClock() }))
  assert.is(clock.now(), 5_000)
  assert.is(clock.id(), manualClock(5_000, { seed: 7 }).id())
})
test.run()
