// A lease that was written and then lost with its transaction, as a full disk does it, made by
// hand: chance hits that moment once in many runs.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { memoryStorage } from '#adapters/storage/memory.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import type { StorageEngine } from '#ports/storage.ts'
import { Runs, streamOf } from '../../plugins/runs/collections.ts'
import { verifyRun } from '../../plugins/runs/verify/verify.ts'
import { readEvents, startServer } from '../conformance/plugin/server.ts'

test('a driver that lost its lease does not announce itself: the next has its number', async () => {
  const memory = memoryStorage({ now: () => Date.now() } as Clock)
  let losses = 0
  const storage: StorageEngine = {
    ...memory,
    epoch: () => losses,
    async update(collection, id, change, options) {
      const isLease =
        losses === 0 &&
        collection.name === Runs.name &&
        (change.inc as { epoch?: number } | undefined)?.epoch === 1
      const before = isLease ? await memory.get(collection, id) : undefined
      const done = await memory.update(collection, id, change, options)
      if (before && done) {
        await memory.remove(collection, id)
        await memory.insert(collection, before)
        losses++
      }
      return done
    },
  }
  const server = await startServer({
    env: { RUNS_LEASE_MS: '300', RUNS_SWEEP_MS: '50' },
    given: { storage },
  })
  try {
    const { token, org_id: orgId } = await server.account(10)
    const { run_id: runId } = (
      await server.call('POST', '/chat', {
        token,
        body: {
          message:
            '[[interval_ms=60]] [[tool=ask_user {"question":"Which?","options":["red","blue"]}]]',
        },
      })
    ).body as { run_id: string }
    const asked = (
      await readEvents(await server.stream(token, runId), ({ event }) => event === 'user_choice')
    ).at(-1)!
    while ((await memory.get(Runs, runId))!.status !== 'waiting')
      await new Promise(resolve => setTimeout(resolve, 5))
    await server.call('POST', `/runs/${runId}/respond`, {
      token,
      body: { question_id: asked.data['question_id'], answer: 'a' },
    })
    assert.is((await readEvents(await server.stream(token, runId))).at(-1)!.data['status'], 'done')
    assert.is(losses, 1)
    const log = await server.engine<EventlogEngine>('eventlog').read(`${orgId}/${streamOf(runId)}`)
    assert.equal(
      log
        .filter(({ type }) => type === 'took@1')
        .map(({ data }) => (data as { epoch: number }).epoch),
      [1, 2],
    )
    assert.equal(
      verifyRun(runId, log, []).filter(what => what.includes('epoch')),
      [],
    )
  } finally {
    await server.stop()
  }
})
test.run()
