// The database dies and comes back under runs of every kind; no process is started again.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { pause } from '../durability/client.ts'
import { faultScenario } from './fault-scenarios.ts'

await faultScenario(
  test,
  'kill -9 of the database, twice',
  async ({ server, midStream, cluster: { members } }) => {
    for (const downMs of [200, 3000]) {
      assert.ok((await midStream(15)) >= 15)
      await server.kill()
      await pause(downMs)
      await server.again()
    }
    await midStream(10)
    for (const { name, process } of members)
      assert.is(process().child.exitCode, null, `${name} lives`)
  },
)
test.run()
