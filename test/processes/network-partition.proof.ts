// The network between the processes and the database is cut for ten seconds under runs of every
// kind; no process is started again.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { pause } from '../durability/client.ts'
import { faultScenario } from './fault-scenarios.ts'

const cutMs = 10_000

await faultScenario(
  test,
  'no packet passes between the processes and the database for ten seconds',
  async ({ network, midStream, cluster: { members } }) => {
    assert.ok((await midStream(15)) >= 15)
    network.cut()
    await pause(cutMs)
    network.heal()
    await midStream(10)
    for (const { name, process } of members)
      assert.is(process().child.exitCode, null, `${name} lives`)
  },
)
test.run()
