// The kit over each API, and what the URL and the environment choose.
import nock from 'nock'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Model } from '#ports/models.ts'
import { hear, leaping, onStage } from '../../test/support/model-servers/provider.ts'
import { chunk, doneFrame, openUrl } from '../../test/support/model-servers/recorded-chat.ts'
import { startModelServer, type WireName } from '../../test/support/model-servers/server.ts'
import { frame } from '../../test/support/model-servers/turn.ts'
import { deltasOf, modelsKit, textOf } from '../../test/conformance/models.ts'
import { opening } from '../../test/conformance/opening.ts'
import { refuses } from '../../test/conformance/runner.ts'
import { manualClock } from '../clock/manual.ts'
import { systemClock } from '../clock/system.ts'
import adapter from './openai.ts'

const parts = { clock: leaping() }
const servers = {
  chat: await startModelServer('chat'),
  responses: await startModelServer('responses'),
}
const open = (name: Exclude<WireName, 'messages'>, options: string) =>
  adapter.open(opening(`openai:${servers[name].base}?model=m&api=${name}&${options}`, parts))
const asked = { long: 'Tell me something long.', tool: 'Please call add.' }

modelsKit(test, 'openai chat', { open: () => open('chat', ''), ...asked })
modelsKit(test, 'openai chat with prefill', { open: () => open('chat', 'prefill=1'), ...asked })
modelsKit(test, 'openai responses', { open: () => open('responses', ''), ...asked })
modelsKit(test, 'openai responses in the background', {
  open: () => open('responses', 'background=1'),
  ...asked,
})

test('nothing stays open after the kit', async () => {
  for (const server of Object.values(servers)) {
    for (let tries = 0; tries < 100 && server.open() > 0; tries++)
      await new Promise(resolve => setTimeout(resolve, 10))
    assert.is(server.open(), 0)
  }
})

test('at OpenAI itself it speaks responses, with the key from the environment', async () => {
  const events = [
    { type: 'response.created', sequence_number: 0, response: { id: 'resp_1' } },
    { type: 'response.output_text.delta', sequence_number: 1, delta: 'Hi' },
    {
      type: 'response.completed',
      sequence_number: 2,
      response: { id: 'resp_1', usage: { input_tokens: 5, output_tokens: 1 } },
    },
  ]
  nock('https://api.openai.com', {
    reqheaders: { authorization: 'Bearer sk-from-the-environment' },
  })
    .post('/v1/responses')
    .reply(200, events.map(event => frame(event, event.type)).join(''), {
      'content-type': 'text/event-stream',
    })
  const provider = await openUrl('openai:?model=gpt-x')
  const { deltas, error } = await hear(provider, { model: 'gpt-x' })
  assert.is(error, undefined)
  assert.equal(deltas, [
    { type: 'text', text: 'Hi' },
    { type: 'usage', usage: { inputTokens: 5, outputTokens: 1 } },
    { type: 'finish', reason: 'stop' },
  ])
  assert.is((await provider.catalogue())[0]!.provider, 'OpenAI')
  nock('https://api.openai.com')
    .post(
      '/v1/chat/completions',
      ({ max_completion_tokens: most, max_tokens: old }) => most === 2048 && old === undefined,
    )
    .reply(200, frame(chunk({ content: 'Hi' }, 'stop')) + doneFrame, {
      'content-type': 'text/event-stream',
    })
  assert.is(
    textOf((await hear(await openUrl('openai:?model=gpt-x&api=chat'), { model: 'gpt-x' })).deltas),
    'Hi',
  )
  nock.cleanAll()
})
test("a URL that cannot work is refused when it opens, by the option's name", async () => {
  for (const [url, said] of [
    ['openai:http://a.test/v1', /^model: must name/],
    ['openai:ftp://a.test?model=m', /^MODELS_URL: must be an http/],
    ['openai:http://ann:hunter2@a.test/v1?model=m', /^MODELS_URL: must hold no user/],
    ['openai:http://a.test/v1?model=m&key=NOT_THERE', /^key: the variable NOT_THERE is not set/],
    ['openai:http://a.test/v1?model=m&key=sk-1234', /^key: must be the name of a variable/],
    ['openai:http://a.test/v1?model=m&api=other', /^api: must be chat, responses/],
    ['openai:http://a.test/v1?model=m&background=1', /^background: needs api responses/],
    ['openai:http://a.test/v1?model=m&api=responses&prefill=1', /^prefill: is not offered/],
    ['openai:http://a.test/v1?model=m&output_price=-1', /^output_price: must be a whole number/],
    [
      'openai:http://a.test/v1?model=m&context=100&output_max=200',
      /^output_max: must not be above/,
    ],
    ['openai:http://a.test/v1?model=m&concurrency=0', /^concurrency: must be/],
    ['openai:http://a.test/v1?model=m&effort=most', /^effort: must be/],
  ] as const) {
    const detail = await refuses('INVALID_FIELD', () => openUrl(url))
    assert.match(detail, said)
    assert.not.match(detail, /hunter2|1234/)
  }
  const bare = opening('openai:?model=m', { clock: systemClock() })
  assert.match(
    await refuses('INVALID_FIELD', () => adapter.open(bare)),
    /^key: the variable OPENAI_API_KEY is not set, nor is OPENAI_API_KEY_FILE/,
  )
  const broken = { ...bare, secret: () => 'sk-with\nnewline' }
  assert.match(
    await refuses('INVALID_FIELD', () => adapter.open(broken)),
    /^key: the variable OPENAI_API_KEY holds characters/,
  )
})
test('what is named in the URL stands in the catalogue', async () => {
  const provider = await openUrl(
    'openai:http://127.0.0.1:1/v1?model=meta/llama-3:8b&name=Llama&context=4096&output_max=512' +
      '&input_price=2&output_price=3&minimum=4&reasoning=1&prefill=1&tools=0&timeout_ms=500',
  )
  const [{ description, ...model }] = (await provider.catalogue()) as [Model]
  assert.equal(model, {
    key: 'meta/llama-3:8b',
    name: 'Llama',
    provider: 'OpenAI-compatible',
    isDefault: true,
    contextTokens: 4096,
    outputTokensMax: 512,
    price: { inputPer1k: 2, outputPer1k: 3, minimum: 4 },
    supports: { tools: false, reasoning: true, prefill: true, resume: false },
  })
  assert.not.match(description, '127.0.0.1')
})
test('the library reads no environment variable of its own', async () => {
  const own = {
    OPENAI_API_KEY: 'sk-planted',
    OPENAI_BASE_URL: 'http://planted.test/v1',
    OPENAI_ORG_ID: 'planted',
    OPENAI_PROJECT_ID: 'planted',
    OPENAI_CUSTOM_HEADERS: 'x-planted: planted\nauthorization: Bearer planted',
    OPENAI_LOG: 'debug',
  }
  Object.assign(process.env, own)
  try {
    await onStage(
      'chat',
      [{ text: 'x' }],
      async ({ provider, server }) => {
        await deltasOf(provider, 'x')
        assert.not.match(JSON.stringify(server.received[0]!.headers), 'planted')
      },
      { parts: { clock: systemClock() } },
    )
    await onStage(
      'chat',
      [{ text: 'x' }],
      async ({ provider, server }) => {
        await deltasOf(provider, 'x')
        assert.is(server.received[0]!.headers.authorization, 'Bearer mine')
      },
      { options: 'key=MINE', parts: { clock: manualClock(), secret: () => 'mine' } },
    )
  } finally {
    for (const name of Object.keys(own)) delete process.env[name]
  }
})

test.after(async () => {
  for (const server of Object.values(servers)) await server.stop()
})
test.run()
