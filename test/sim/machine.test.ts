// One machine that loses what it had not synced; and seeds that once failed.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { oneFault } from './one-fault.ts'
import { regressions } from './regressions.ts'
import { bySeed, told, type Count } from './sweep.ts'

oneFault(test, 'machine')

test('seeds that once failed', async () => {
  const count: Count = { schedules: 0, moves: 0 }
  for (const seed of regressions) {
    const failure = await bySeed(seed, count)
    assert.is(failure && told(failure), undefined)
  }
  assert.is(count.schedules, regressions.length)
})

test.run()
