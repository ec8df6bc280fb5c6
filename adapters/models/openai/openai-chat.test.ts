// What servers answer that speak chat completions, each with ways of its own.
import nock from 'nock'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { textOf } from '../../../test/conformance/models.ts'
import { hear, onStage, passing } from '../../../test/support/model-servers/provider.ts'
import {
  chunk,
  doneFrame,
  openUrl,
  recorded,
} from '../../../test/support/model-servers/recorded-chat.ts'

test('Ollama: a whole call in one chunk without index, deliberation in `reasoning`', async () => {
  const { deltas } = await recorded([
    chunk({ role: 'assistant', content: '', reasoning: 'Hm.' }),
    chunk({
      tool_calls: [
        { id: 'call_a', type: 'function', function: { name: 'add', arguments: '{"a":1}' } },
      ],
    }),
    chunk({
      tool_calls: [
        { id: 'call_b', type: 'function', function: { name: 'add', arguments: '{"a":2}' } },
      ],
    }),
    chunk({ content: '' }, 'stop'),
    { ...chunk({}), choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } },
    doneFrame,
  ])
  assert.equal(
    deltas.map(({ type }) => type),
    ['reasoning', 'tool_open', 'tool_open', 'tool_call', 'tool_call', 'usage', 'finish'],
  )
  assert.equal(
    deltas.flatMap(delta => (delta.type === 'tool_call' ? [delta.call.arguments] : [])),
    [{ a: 1 }, { a: 2 }],
  )
  assert.equal(deltas.at(-1), { type: 'finish', reason: 'tool_calls' })
})
test('calls that all say index 0 differ by their ids; a call without an id gets one', async () => {
  const { deltas } = await recorded([
    chunk({ tool_calls: [{ index: 0, id: 'a', function: { name: 'add', arguments: '{"a"' } }] }),
    chunk({ tool_calls: [{ index: 0, id: 'a', function: { arguments: ':1}' } }] }),
    chunk({ tool_calls: [{ index: 0, id: 'b', function: { name: 'add', arguments: '{"a":2}' } }] }),
    chunk({ tool_calls: [{ index: 1, function: { name: 'add', arguments: '{"a":3}' } }] }),
    chunk({}, 'tool_calls'),
    doneFrame,
  ])
  const calls = deltas.flatMap(delta => (delta.type === 'tool_call' ? [delta.call] : []))
  assert.equal(
    calls.map(({ arguments: args }) => args),
    [{ a: 1 }, { a: 2 }, { a: 3 }],
  )
  assert.equal(
    calls.slice(0, 2).map(({ id }) => id),
    ['a', 'b'],
  )
  assert.match(calls[2]!.id, /^call_.{36}$/)
})
test('vLLM: running counts, comments, `reasoning_content`, a status as error code', async () => {
  const counted = (n: number) => ({ usage: { prompt_tokens: 9, completion_tokens: n } })
  const { deltas } = await recorded([
    ': keep-alive\n\n',
    chunk({ reasoning_content: 'So.' }, null, counted(1)),
    chunk({ content: 'A' }, null, counted(2)),
    chunk({ content: 'B' }, 'stop', counted(3)),
    doneFrame,
  ])
  assert.equal(deltas, [
    { type: 'reasoning', text: 'So.' },
    { type: 'text', text: 'A' },
    { type: 'text', text: 'B' },
    { type: 'usage', usage: { inputTokens: 9, outputTokens: 3 } },
    { type: 'finish', reason: 'stop' },
  ])
  const broken = await recorded([
    chunk({ content: 'A' }),
    { error: { message: 'the prompt', type: 'BadRequestError', code: 400 } },
  ])
  assert.match(broken.error!.message, /refused.*answered 400 \(BadRequestError\)/)
})
test('llama.cpp says that its window is too small; DeepSeek that it gave up', async () => {
  nock('http://model.test')
    .post('/v1/chat/completions')
    .reply(400, {
      error: {
        code: 400,
        message: 'the request exceeds the available context size',
        type: 'exceed_context_size_error',
        n_prompt_tokens: 9000,
        n_ctx: 4096,
      },
    })
  const provider = await openUrl('openai:http://model.test/v1?model=m')
  assert.match((await hear(provider)).error!.message, /refused.*too long for the model/)
  const { error, deltas } = await recorded([
    chunk({ content: 'A' }),
    chunk({}, 'insufficient_system_resource'),
  ])
  assert.match(error!.message, /failed.*insufficient_system_resource/)
  assert.is(textOf(deltas), 'A')
})
test('a finish of tool_calls without a call is a stop; an answer must be a stream', async () => {
  assert.equal((await recorded([chunk({ content: 'A' }, 'tool_calls'), doneFrame])).deltas.at(-1), {
    type: 'finish',
    reason: 'stop',
  })
  await onStage(
    'chat',
    [{ body: '{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}' }],
    async ({ provider, clock }) => {
      assert.match(
        (await passing(clock, hear(provider))).error!.message,
        'ended its answer in the middle',
      )
    },
  )
})
test('a call that the content filter cuts is not made', async () => {
  const { deltas } = await recorded([
    chunk({ tool_calls: [{ index: 0, id: 'a', function: { name: 'add', arguments: '{"a":1}' } }] }),
    chunk({}, 'content_filter'),
    doneFrame,
  ])
  assert.equal(
    deltas.map(({ type }) => type),
    ['tool_open', 'usage', 'finish'],
  )
  assert.equal(deltas.at(-1), { type: 'finish', reason: 'filtered' })
})

test.run()
