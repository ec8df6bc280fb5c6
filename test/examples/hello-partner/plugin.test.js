// The plugin with the real platform, in memory. It runs under node --test, so no other package is
// needed. The platform's own tests use uvu and end with test.run(). The kits take the test function
// of either.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pluginConformance, testPlugin } from 'agent-platform/kit/harness'
import { readEvents } from 'agent-platform/kit/server'

pluginConformance(test, {
  path: import.meta.dirname,
  fixtures: {
    greeting: async ({ call }, { token }) =>
      (await call('POST', '/greetings', { token, body: { name: 'somebody' } })).body.id,
  },
})

test('a greeting is ordered, delivered and followed; an agent greets with the tool', async () => {
  const { default: plugin } = await import('./plugin.js')
  const server = await testPlugin(plugin, { env: { HELLO_WORD: 'Good morning' } })
  try {
    const { token } = await server.account()
    const headers = { authorization: `Bearer ${token}` }
    const { body: ordered } = await server.call('POST', '/greetings', {
      token,
      body: { name: 'World' },
    })
    assert.equal(ordered.status, 'waiting')
    const [event] = await readEvents(
      await fetch(`${server.base}/greetings/${ordered.id}/events`, { headers }),
    )
    assert.deepEqual(
      [event.event, event.data],
      ['greeting_delivered', { text: 'Good morning, World!' }],
    )
    const { body: run } = await server.call('POST', '/chat', {
      token,
      body: { message: '[[tool=greet {"name":"World"}]]' },
    })
    const events = await readEvents(await server.stream(token, run.run_id))
    assert.equal(
      events.find(one => one.event === 'tool_result').data.content,
      'Good morning, World!',
    )
  } finally {
    await server.stop()
  }
})
