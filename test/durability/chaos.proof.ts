// 200 runs of every kind under a server that is killed, then under one that is frozen for longer
// than its leases.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { pause } from './client.ts'
import { endRounds, playRound } from './round.ts'

test('200 runs through kill -9, four times', async () => {
  const living: number[] = []
  await playRound({}, async ({ midStream, ending, restart, followers }) => {
    for (const moment of [() => midStream(60), () => ending(4), () => ending(4), () => ending(4)]) {
      living.push(await moment())
      await restart()
    }
    assert.ok(followers.filter(({ broke }) => broke > 0).length >= 60, 'their readers were cut off')
  })
  assert.ok(
    living[0]! >= 60 && living.every(count => count >= 20),
    `so many were in mid-stream when it died: ${living}`,
  )
})

test('200 runs through a process that freezes three times for longer than its leases', async () => {
  const frozen: number[] = []
  await playRound({}, async ({ midStream, server, followers }) => {
    for (let times = 0; times < 3; times++) {
      frozen.push(await midStream(60))
      server().child.kill('SIGSTOP')
      // Some readers lose their patience; the others wait at their open connections.
      await pause(400)
      followers.forEach(({ drop }, i) => {
        if (i % 2 === 0) drop()
      })
      await pause(600)
      server().child.kill('SIGCONT')
    }
  })
  assert.ok(
    frozen.every(count => count >= 60),
    `so many were in mid-stream when it froze: ${frozen}`,
  )
})

test.after(endRounds)
test.run()
