// Processes that die, and processes that are replaced in turn, under runs of every kind.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { faultScenario } from './fault-scenarios.ts'

await faultScenario(
  test,
  'kill -9 of a worker and of an api process, then every process is replaced in good order',
  async ({ cluster: { members }, midStream, ending }) => {
    assert.ok((await midStream(15)) >= 15)
    for (const role of ['worker', 'api'] as const) {
      await members.find(member => member.role === role)!.restart('SIGKILL')
      await midStream(10)
    }
    for (const member of members) {
      await member.restart('SIGTERM')
      await ending(2)
    }
  },
)
test.run()
