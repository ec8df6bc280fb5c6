import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createCommits } from './commits.ts'
import type { Database } from './database.ts'

/** Milliseconds between two commits. The first carried `operations` operations. */
async function gapAfter(operations: number): Promise<number> {
  const ends: number[] = []
  const statement = (sql: string) => ({
    run: () => (sql === 'COMMIT' ? ends.push(performance.now()) : 0),
    get: () => undefined,
    all: () => [],
  })
  const db: Database = {
    raw: undefined as never,
    exec: () => undefined,
    prepare: statement,
    close: () => undefined,
  }
  const commits = createCommits(db, { onSettled: () => undefined, onLoss: () => undefined })
  await sleep(10)
  for (const through of [operations, operations + 1]) {
    commits.begin()
    commits.ran(through)
    commits.ask()
    while (commits.settled() < through) await sleep(0)
  }
  return ends[1]! - ends[0]!
}
const least = async (operations: number): Promise<number> => {
  const gaps: number[] = []
  for (let time = 0; time < 20; time++) gaps.push(await gapAfter(operations))
  return Math.min(...gaps)
}

test('a commit waits longer where the one before carried many operations', async () => {
  const [few, many] = [await least(31), await least(32)]
  // A timer may be early by the lag of the loop's clock. How late it may be is not bounded.
  assert.ok(few > 1, `${few} ms after few`)
  assert.ok(many > 4, `${many} ms after many`)
})
test.run()
