// own-process: it counts what is on the heap.
// What runs listened to is let go with them: a signal that somebody still listens to would stay for
// ever, and with it what the listener knows.
import { queryObjects } from 'node:v8'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { startServer } from '../conformance/plugin/server.ts'

test('no signal of a tool call, of a question or of a stream outlives its run', async () => {
  const server = await startServer({
    env: { LIMITS_RUNS_PER_SECOND: '10000', LIMITS_RUNS_BURST: '10000' },
  })
  try {
    const { token } = await server.account(1000)
    const runs = async (count: number) => {
      for (let i = 0; i < count; i++) {
        const { body } = await server.call('POST', '/chat', {
          token,
          body: {
            message:
              '[[interval_ms=1]] ' +
              '[[tools=[["calculator",{"expression":"6*7"}],["note",{"title":"a","text":"b"}]]]]',
          },
        })
        assert.match(
          await (await server.stream(token, (body as { run_id: string }).run_id)).text(),
          /event: done/,
        )
      }
      // A run is let go a moment after its last event, and a connection after its last answer.
      await new Promise(resolve => setTimeout(resolve, 300))
      return queryObjects(AbortSignal, { format: 'count' })
    }
    await runs(10)
    const before = await runs(10)
    const after = await runs(40)
    assert.ok(
      after <= before + 8,
      `${before} signals before 40 runs of two calls each, ${after} after them`,
    )
  } finally {
    await server.stop()
  }
})
test.run()
