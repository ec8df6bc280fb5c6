// The partner's example in a thread keeps what every plugin keeps, and does there what it does in
// the process.
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { pluginConformance } from '../conformance/plugin/harness.ts'
import { readEvents, startServer } from '../conformance/plugin/server.ts'

const path = join(import.meta.dirname, '../examples/hello-partner')
const isolated = { memory_mb: 64, stall_ms: 10_000 }

pluginConformance(test, {
  path,
  isolated,
  fixtures: {
    greeting: async ({ call }, { token }) =>
      (
        (await call('POST', '/greetings', { token, body: { name: 'somebody' } })).body as {
          id: string
        }
      ).id,
  },
})

test('routes, jobs, streams and tools work from the thread; a move drops nothing', async () => {
  const server = await startServer({ env: { HELLO_WORD: 'Good morning' } })
  try {
    assert.equal((await server.pluginRegistry.load(path, { isolated })).isolated, isolated)
    const { token } = await server.account()
    const headers = { authorization: `Bearer ${token}` }
    const order = async (name: string) => {
      const { status, body: ordered } = await server.call('POST', '/greetings', {
        token,
        body: { name },
      })
      assert.is(status, 201)
      const [event] = await readEvents(
        await fetch(`${server.base}/greetings/${(ordered as { id: string }).id}/events`, {
          headers,
        }),
      )
      assert.equal(
        [event!.event, event!.data],
        ['greeting_delivered', { text: `Good morning, ${name}!` }],
      )
    }
    await order('thread')
    const { body: run } = await server.call('POST', '/chat', {
      token,
      body: { message: '[[tool=greet {"name":"World"}]]' },
    })
    const events = await readEvents(await server.stream(token, (run as { run_id: string }).run_id))
    assert.is(
      (events.find(one => one.event === 'tool_result')!.data as { content: string }).content,
      'Good morning, World!',
    )
    let going = true
    const traffic = (async () => {
      for (let i = 0; going; i++) await order(`caller ${i}`)
    })()
    for (const bounds of [null, isolated, null, isolated])
      assert.equal((await server.pluginRegistry.isolate('hello', bounds)).isolated, bounds)
    going = false
    await traffic
    assert.equal(
      (await server.pluginRegistry.rollback('hello')).isolated,
      null,
      'a rollback goes back to where it ran',
    )
  } finally {
    await server.stop()
  }
})

test.run()
