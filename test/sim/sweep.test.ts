// One crash and one stall at every call of every port, over all scripts: whatever happens, each run ends once, as it should, and is paid once.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { coldStart } from './play.ts'
import { regressions } from './regressions.ts'
import { scripts } from './scripts.ts'
import { bySeed, singles, told, worlds, type Count, type Failure } from './sweep.ts'

for (const world of worlds([undefined])) test(`${world.script.name}, ${world.loses ? 'one machine that loses what it had not synced' : 'two drivers'}`, async () => {
  const count: Count = { schedules: 0, moves: 0 }, failures: Failure[] = []
  for await (const failure of singles(world, count)) failures.push(failure)
  assert.is(failures.slice(0, 3).map(told).join('\n'), '')
  assert.ok(count.schedules > 60, `${count.schedules} schedules`)
})

for (const script of scripts) test(`${script.name}: with its terminal record withheld, the log leads to the same one`, async () => {
  assert.equal(await coldStart(script, 1), [])
})

test('seeds that once failed', async () => {
  const count: Count = { schedules: 0, moves: 0 }
  for (const seed of regressions) {
    const failure = await bySeed(seed, count)
    assert.is(failure && told(failure), undefined)
  }
  assert.is(count.schedules, regressions.length)
})

test.run()
