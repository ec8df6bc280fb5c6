import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { limitsKit } from '../../test/kit/limits.ts'
import { manualClock } from '../clock/manual.ts'
import { memoryLimits } from './memory.ts'

limitsKit(test, 'memory', {
  open: async () => {
    const clock = manualClock()
    return { limits: memoryLimits({ clock }), pass: (ms) => clock.advance(ms) }
  },
})

test('beyond its bound it forgets the subject that has been idle for longest, and no other', async () => {
  const limits = memoryLimits({ clock: manualClock(), subjectsMax: 2 })
  const once = { count: 1, perMs: 60_000 }
  assert.is(await limits.take('n', 'first', once), 0)
  assert.is(await limits.take('n', 'second', once), 0)
  assert.ok((await limits.take('n', 'first', once)) > 0, 'a refused try counts as use')
  assert.is(await limits.take('n', 'third', once), 0)
  assert.ok((await limits.take('n', 'first', once)) > 0)
  assert.is(await limits.take('n', 'second', once), 0)
})
test.run()
