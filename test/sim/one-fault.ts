// A crash or a stall at every call of every port, in turns, over the scripts that do not take long
// (`npm run simulate` has all of them, and both at each): whatever happens, each run ends once, as
// it should, and is paid once.
import * as assert from 'uvu/assert'
import type { Test } from '../conformance/runner.ts'
import type { Kind } from './simulated-cluster.ts'
import { kindWords, singles, told, worlds, type Count, type Failure } from './sweep.ts'

export function oneFault(test: Test, kind: Kind): void {
  for (const world of worlds([undefined]).filter(one => one.kind === kind && !one.script.isLong))
    test(`${world.script.name}, ${kindWords[kind]}`, async () => {
      const count: Count = { schedules: 0, moves: 0 }
      const failures: Failure[] = []
      for await (const failure of singles(world, count, { alternately: true }))
        failures.push(failure)
      assert.is(failures.slice(0, 3).map(told).join('\n'), '')
      assert.ok(count.schedules > 30, `${count.schedules} schedules`)
    })
}
