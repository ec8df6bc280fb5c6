// A small form of the proofs beside it: the real program, a command beside it, kill -9 and a start
// on what is left.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { endRounds, playRound } from './round.ts'

test('20 runs of every kind through kill -9', async () => {
  let broke = 0
  await playRound(
    {},
    async ({ midStream, restart, followers, server }) => {
      await midStream(8)
      await restart()
      await midStream(1)
      broke = followers.filter(one => one.broke > 0).length
      assert.is(server().child.exitCode, null, 'it serves again')
    },
    { runs: 20, atOnce: 20 },
  )
  assert.ok(broke > 0, 'readers were cut off')
})

test.after(endRounds)
test.run()
