// Two seconds of what `npm run fuzz` does for as long as it is told to.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { endServers, startServer } from '../conformance/plugin/server.ts'
import { fuzz } from './fuzz.ts'

test('random requests are answered in our words, or hung up on', async () => {
  const count = await fuzz(await startServer(), { seconds: 2, seed: 1 })
  assert.ok(count > 10, `only ${count} conversations`)
})

test.after(endServers)
test.run()
