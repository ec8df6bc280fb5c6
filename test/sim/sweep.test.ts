// A small form of `npm run simulate`: a crash or a stall at some moments of the short scripts,
// seeds that once failed, and what a cold start makes of a log without its end.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { coldStart } from './play.ts'
import { regressions } from './regressions.ts'
import { scripts } from './scripts.ts'
import { bySeed, kindWords, singles, told, worlds, type Count, type Failure } from './sweep.ts'

/** One moment in so many; another remainder in each world, so that together they cover more. */
const stride = 24

for (const [n, world] of worlds([undefined])
  .filter(({ script }) => !script.isLong)
  .entries())
  test(`one fault: ${world.script.name}, ${kindWords[world.kind]}`, async () => {
    const count: Count = { schedules: 0, moves: 0 }
    const failures: Failure[] = []
    for await (const failure of singles(world, count, { stride, from: n % stride }))
      failures.push(failure)
    assert.is(failures.slice(0, 3).map(told).join('\n'), '')
    assert.ok(count.schedules > 1, `${count.schedules} schedules`)
  })

test('seeds that once failed', async () => {
  const count: Count = { schedules: 0, moves: 0 }
  for (const seed of regressions) {
    const failure = await bySeed(seed, count)
    assert.is(failure && told(failure), undefined)
  }
  assert.is(count.schedules, regressions.length)
})

for (const script of scripts)
  test(`${script.name}: without its terminal record the log leads to the same one`, async () => {
    assert.equal(await coldStart(script, 1), [])
  })

test.run()
