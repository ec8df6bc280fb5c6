import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { limitsKit } from '../../test/conformance/limits.ts'
import { manualClock } from '../clock/manual.ts'
import { memoryLimits } from './memory.ts'

limitsKit(test, 'memory', {
  open: async () => {
    const clock = manualClock()
    return { limits: memoryLimits({ clock }), pass: ms => clock.advance(ms) }
  },
})

test('beyond its bound no count in force is forgotten: new subjects share counts', async () => {
  const clock = manualClock()
  const limits = memoryLimits({ clock, subjectsMax: 2 })
  const once = { count: 1, perMs: 60_000 }
  for (const known of ['first', 'second']) assert.is(await limits.take('n', known, once), 0)
  const waits = []
  for (let n = 0; n < 20_000; n++) waits.push(await limits.take('n', `stranger ${n}`, once))
  assert.is(waits[0], 0)
  assert.ok(
    waits.filter(ms => ms === 0).length <= 4096,
    'strangers share a bounded number of counts',
  )
  for (const known of ['first', 'second'])
    assert.ok((await limits.take('n', known, once)) > 0, known)
  await clock.advance(60_001)
  assert.is(await limits.take('n', 'first', once), 0)
})
test('a shared count stays in force when there is room for own counts again', async () => {
  const clock = manualClock()
  const limits = memoryLimits({ clock, subjectsMax: 1 })
  await limits.take('n', 'first', { count: 1, perMs: 1000 })
  assert.is(await limits.take('n', 'late', { count: 1, perMs: 60_000 }), 0)
  await clock.advance(2000)
  for (let n = 0; n < 10; n++) await limits.take('other', String(n), { count: 1, perMs: 10 })
  assert.ok((await limits.take('n', 'late', { count: 1, perMs: 60_000 })) > 0)
})
test.run()
