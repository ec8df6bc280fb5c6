// Whole runs over the API, with their model behind each provider's wire: two tool calls, a streamed
// answer, credits.
import { Type as t } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, into } from '#kernel'
import { loadPlugins } from '../../kernel/loading/sources.ts'
import { Tools, type Tool } from '../../plugins/runs/api.ts'
import { startModelServer, type WireName } from '../support/model-servers/server.ts'
import type { Asked, Turn } from '../support/model-servers/turn.ts'
import { readEvents, startServer } from '../conformance/plugin/server.ts'

const plantedKey = 'sk-planted-0123456789'
const Sum = t.Object({ a: t.Number(), b: t.Number() })
const addNumbers: Tool = {
  name: 'add_numbers',
  description: 'Adds.',
  effect: 'none',
  parameters: Sum,
  run: args => {
    const { a, b } = args as { a: number; b: number }
    return { content: String(a + b) }
  },
}
const adder = definePlugin({
  name: 'adder',
  version: '1.0.0',
  kernel: '^1.0.0',
  contributes: [into(Tools, () => addNumbers)],
})
/** Adds twice, one call an answer, and then says what came out. */
function answer({ said }: Asked): Turn {
  const results = said.flatMap(one => one.results)
  const usage = { input: 1000, output: 500 }
  if (results.length === 0)
    return { text: 'First. ', calls: [{ name: 'add_numbers', arguments: '{"a":1,"b":2}' }], usage }
  if (results.length === 1)
    return { calls: [{ name: 'add_numbers', arguments: `{"a":${results[0]},"b":10}` }], usage }
  return { text: `It is ${results[1]}, all told.`, usage }
}

for (const [wire, scheme, options] of [
  ['chat', 'openai', 'api=chat'],
  ['responses', 'openai', 'api=responses'],
  ['responses', 'openai', 'api=responses&background=1'],
  ['messages', 'anthropic', ''],
] as const) {
  test(`a run with two calls through ${scheme} (${options || 'messages'}) is charged`, async () => {
    const provider = await startModelServer(wire as WireName, { answer, key: plantedKey })
    const server = await startServer({
      plugins: [...(await loadPlugins()), adder],
      env: {
        MODELS_URL:
          `${scheme}:${provider.base}?model=m&${options}&key=MODEL_KEY` +
          '&input_price=1&output_price=2&minimum=1',
        MODEL_KEY: plantedKey,
        LOG_LEVEL: 'debug',
      },
    })
    try {
      const who = await server.account(1000)
      const started = await server.call('POST', '/chat', {
        token: who.token,
        body: { message: 'Add one, two and ten.' },
      })
      assert.is(started.status, 200, started.text)
      const { run_id: runId, session_id: sessionId } = started.body as {
        run_id: string
        session_id: string
      }
      const events = await readEvents(await server.stream(who.token, runId))
      const of = (type: string) =>
        events.filter(({ event }) => event === type).map(({ data }) => data)
      assert.equal(of('error'), [])
      assert.is(
        of('token')
          .map(({ text }) => text)
          .join(''),
        'First. \n\nIt is 13, all told.',
        'what follows a call is apart',
      )
      assert.ok(of('token').length > 2, 'it came in pieces')
      assert.equal(
        of('tool_call').map(({ name, arguments: args }) => [name, args]),
        [
          ['add_numbers', { a: 1, b: 2 }],
          ['add_numbers', { a: 3, b: 10 }],
        ],
      )
      assert.equal(
        of('tool_result').map(({ status, content }) => [status, content]),
        [
          ['ok', '3'],
          ['ok', '13'],
        ],
      )
      assert.equal(
        of('usage').map(
          ({ input_tokens: input, output_tokens: output, credits, model_calls: calls }) => [
            input,
            output,
            credits,
            calls,
          ],
        ),
        [[3000, 1500, 6, 3]],
      )
      assert.equal(of('done'), [{ status: 'done', session_id: sessionId }])
      assert.equal((await server.call('GET', '/balance', { token: who.token })).body, {
        balance: 994,
        held: 0,
        available: 994,
      })
      assert.is(provider.calls().length, 3)
      const ready = await server.call('GET', '/models', { token: who.token })
      assert.not.ok(JSON.stringify([events, ready.body, server.logged]).includes(plantedKey))
    } finally {
      await server.stop()
      await provider.stop()
    }
  })
}
test('a key that the provider does not take ends the run, and is said nowhere', async () => {
  const provider = await startModelServer('chat', { answer, key: 'another' })
  const server = await startServer({
    env: {
      MODELS_URL: `openai:${provider.base}?model=m&key=MODEL_KEY`,
      MODEL_KEY: plantedKey,
      LOG_LEVEL: 'debug',
    },
  })
  try {
    const who = await server.account(1000)
    const { body } = await server.call('POST', '/chat', {
      token: who.token,
      body: { message: 'Add.' },
    })
    const events = await readEvents(
      await server.stream(who.token, (body as { run_id: string }).run_id),
    )
    assert.equal(events.map(({ event, data }) => [event, data['code']]).at(-1), [
      'error',
      'MODEL_REFUSED',
    ])
    assert.match(String(events.at(-1)!.data['detail']), 'answered 401 (invalid_api_key)')
    assert.equal((await server.call('GET', '/balance', { token: who.token })).body, {
      balance: 1000,
      held: 0,
      available: 1000,
    })
    assert.is(provider.calls().length, 1)
    assert.match(server.logged.join(''), 'models.call_failed')
    assert.not.ok(JSON.stringify([events, server.logged]).includes(plantedKey))
  } finally {
    await server.stop()
    await provider.stop()
  }
})
test.run()
