import nock from 'nock'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { ModelDelta } from '#ports/models.ts'
import { hear, onStage } from '../../test/support/model-servers/provider.ts'
import { startModelServer } from '../../test/support/model-servers/server.ts'
import { frame } from '../../test/support/model-servers/turn.ts'
import { deltasOf, modelsKit, textOf } from '../../test/conformance/models.ts'
import { opening } from '../../test/conformance/opening.ts'
import { refuses } from '../../test/conformance/runner.ts'
import { systemClock } from '../clock/system.ts'
import adapter from './anthropic.ts'

const clock = systemClock()
const server = await startModelServer('messages')
const open = (options: string) =>
  adapter.open(opening(`anthropic:${server.base}?model=m&${options}`, { clock }))
const asked = { long: 'Tell me something long.', tool: 'Please call add.' }

modelsKit(test, 'anthropic', { open: () => open(''), ...asked })
modelsKit(test, 'anthropic with prefill', { open: () => open('prefill=1'), ...asked })

const secret = (name: string) =>
  name === 'ANTHROPIC_API_KEY' ? 'sk-ant-from-the-environment' : undefined
const openUrl = (url: string) => adapter.open(opening(url, { clock, secret }))
/** The result of one call that gets a recorded answer. */
async function recorded(
  events: readonly ({ type: string } & Record<string, unknown>)[],
): Promise<{ deltas: ModelDelta[]; error: Error | undefined }> {
  nock('https://api.anthropic.com', {
    reqheaders: { 'x-api-key': 'sk-ant-from-the-environment', 'anthropic-version': '2026-10-21' },
  })
    .post('/v1/messages')
    .reply(200, events.map(event => frame(event, event.type)).join(''), {
      'content-type': 'text/event-stream',
    })
  const provider = await openUrl('anthropic:?model=claude-x')
  try {
    return await hear(provider, { model: 'claude-x' })
  } finally {
    await provider.close()
    nock.cleanAll()
  }
}
const start = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    usage: {
      input_tokens: 20,
      cache_creation_input_tokens: 3,
      cache_read_input_tokens: 4,
      output_tokens: 1,
    },
  },
}
const block = (index: number, content: object, ...deltas: object[]) => [
  { type: 'content_block_start', index, content_block: content },
  ...deltas.map(delta => ({ type: 'content_block_delta', index, delta })),
  { type: 'content_block_stop', index },
]
const end = (reason: string) => [
  { type: 'message_delta', delta: { stop_reason: reason }, usage: { output_tokens: 42 } },
  { type: 'message_stop' },
]

test('at Anthropic itself: thinking, text, a call, and all input counted', async () => {
  const { deltas, error } = await recorded([
    start,
    ...block(
      0,
      { type: 'thinking', thinking: '', signature: '' },
      { type: 'thinking_delta', thinking: 'Hm.' },
      { type: 'signature_delta', signature: 'x' },
    ),
    { type: 'ping' },
    ...block(1, { type: 'redacted_thinking', data: 'x' }),
    ...block(2, { type: 'text', text: '' }, { type: 'text_delta', text: 'I add.' }),
    ...block(
      3,
      { type: 'tool_use', id: 'toolu_1', name: 'add', input: {} },
      { type: 'input_json_delta', partial_json: '' },
      { type: 'input_json_delta', partial_json: '{"a":' },
      { type: 'input_json_delta', partial_json: '1}' },
    ),
    ...end('tool_use'),
  ])
  assert.is(error, undefined)
  assert.equal(deltas, [
    { type: 'reasoning', text: 'Hm.' },
    { type: 'text', text: 'I add.' },
    { type: 'tool_open', id: 'toolu_1', name: 'add' },
    { type: 'tool_call', call: { id: 'toolu_1', name: 'add', arguments: { a: 1 } } },
    { type: 'usage', usage: { inputTokens: 27, outputTokens: 42 } },
    { type: 'finish', reason: 'tool_calls' },
  ])
})
test('every stop reason has its finish', async () => {
  for (const [reason, finish] of [
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['refusal', 'filtered'],
    ['tool_use', 'stop'],
    ['pause_turn', 'stop'],
  ]) {
    const { deltas } = await recorded([
      start,
      ...block(0, { type: 'text', text: 'x' }),
      ...end(reason!),
    ])
    assert.equal(deltas.at(-1), { type: 'finish', reason: finish }, reason)
    assert.is(textOf(deltas), 'x')
  }
})
test('a prompt that is too long is refused as such', async () => {
  nock('https://api.anthropic.com')
    .post('/v1/messages')
    .reply(400, {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 1 tokens > 0 maximum' },
    })
  assert.match(
    (await hear(await openUrl('anthropic:?model=claude-x'), { model: 'claude-x' })).error!.message,
    /refused.*too long/,
  )
})
test("a URL that cannot work is refused when it opens, by the option's name", async () => {
  for (const [url, said] of [
    ['anthropic:', /^model: must name/],
    [
      'anthropic:?model=m&thinking_tokens=100',
      /^thinking_tokens: must be a whole number from 1024/,
    ],
    ['anthropic:?model=m&thinking_tokens=9000', /^thinking_tokens: must be below/],
    ['anthropic:?model=m&key=OTHER', /^key: the variable OTHER is not set/],
  ] as const)
    assert.match(await refuses('INVALID_FIELD', () => openUrl(url)), said)
  const [model] = await (await openUrl('anthropic:?model=m')).catalogue()
  assert.equal(
    [model!.provider, model!.supports],
    ['Anthropic', { tools: true, reasoning: false, prefill: false, resume: false }],
  )
})
test('the library looks for no credentials of its own, and sends none', async () => {
  const own = {
    ANTHROPIC_API_KEY: 'sk-planted',
    ANTHROPIC_AUTH_TOKEN: 'planted',
    ANTHROPIC_BASE_URL: 'http://planted.test',
    ANTHROPIC_CUSTOM_HEADERS: 'x-planted: planted\nx-api-key: planted',
    ANTHROPIC_LOG: 'debug',
  }
  Object.assign(process.env, own)
  try {
    await onStage(
      'messages',
      [{ text: 'x' }],
      async ({ provider, server: staged }) => {
        await deltasOf(provider, 'x')
        assert.not.match(JSON.stringify(staged.received[0]!.headers), 'planted')
      },
      { parts: { clock } },
    )
  } finally {
    for (const name of Object.keys(own)) delete process.env[name]
  }
})

test.after(() => server.stop())
test.run()
