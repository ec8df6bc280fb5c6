import nock from 'nock'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Clock } from '#ports/clock.ts'
import type { Model, ModelDelta, ModelRequest } from '#ports/models.ts'
import { hear, onStage, passing, until } from '../../test/support/model-servers/provider.ts'
import { startModelServer, type WireName } from '../../test/support/model-servers/server.ts'
import { frame } from '../../test/support/model-servers/turn.ts'
import { deltasOf, modelsKit, textOf } from '../../test/conformance/models.ts'
import { opening } from '../../test/conformance/opening.ts'
import { refuses } from '../../test/conformance/runner.ts'
import { manualClock } from '../clock/manual.ts'
import { systemClock } from '../clock/system.ts'
import adapter from './openai.ts'

/** A clock that leaps, so that checkpoints come as often as they may. */
const leaping = (): Clock => {
  let ms = 0
  return { ...systemClock(), monotonic: () => (ms += 1000) }
}
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

const secret = (name: string) => (name === 'OPENAI_API_KEY' ? 'sk-from-the-environment' : undefined)
const openUrl = (url: string) => adapter.open(opening(url, { clock: systemClock(), secret }))
/** The result of one call that gets a server's recorded answer. */
async function recorded(
  frames: readonly (object | string)[],
  url = 'openai:http://model.test/v1?model=m',
  request: Partial<ModelRequest> = {},
): Promise<{ deltas: ModelDelta[]; body: Record<string, unknown>; error: Error | undefined }> {
  let body: Record<string, unknown> = {}
  nock('http://model.test')
    .post('/v1/chat/completions', sent => Boolean((body = sent as typeof body)))
    .reply(200, frames.map(one => (typeof one === 'string' ? one : frame(one))).join(''), {
      'content-type': 'text/event-stream',
    })
  const provider = await openUrl(url)
  try {
    return { ...(await hear(provider, request)), body }
  } finally {
    await provider.close()
    nock.cleanAll()
  }
}
const chunk = (delta: object, finish: string | null = null, more: object = {}) => ({
  id: 'x',
  object: 'chat.completion.chunk',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
})
const doneFrame = frame('[DONE]')

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
test('an answer in the background can be resumed, but never in the middle of a call', async () => {
  const calls = [
    { id: 'c1', name: 'add', arguments: '{"a":1}' },
    { id: 'c2', name: 'add', arguments: '{"a":2}' },
  ]
  await onStage(
    'responses',
    [{ text: 'Let me add.', calls }],
    async ({ provider, server }) => {
      const { deltas } = await hear(provider)
      const kept: ModelDelta[] = []
      let openCalls = 0
      let resumed = 0
      for (const delta of deltas) {
        if (delta.type === 'tool_open') openCalls++
        if (delta.type === 'tool_call') openCalls--
        if (delta.type !== 'checkpoint') {
          kept.push(delta)
          continue
        }
        assert.is(openCalls, 0)
        const rest = (await hear(provider, { resume: delta.checkpoint })).deltas
        assert.equal(
          [...kept, ...rest].filter(({ type }) => type !== 'checkpoint'),
          deltas.filter(({ type }) => type !== 'checkpoint'),
        )
        resumed++
      }
      assert.ok(resumed > 5)
      assert.is(server.calls().length, 1, 'the answer was asked for once')
    },
    { options: 'background=1', parts: { clock: leaping() } },
  )
})
test('checkpoints are bounded in rate', async () => {
  await onStage(
    'responses',
    [{ text: Array.from({ length: 50 }, (_, n) => `w${n} `).join('') }],
    async ({ provider, clock }) => {
      const { deltas } = await hear(provider)
      assert.equal(
        deltas
          .filter(({ type }) => type === 'checkpoint')
          .map(delta => delta.type === 'checkpoint' && delta.checkpoint),
        [{ response: 'resp_1', at: 0 }],
      )
      assert.is(clock.sleeping(), 0)
    },
    { options: 'background=1' },
  )
})
test('who cancels ends the answer there too; who only goes away does not', async () => {
  for (const [reason, cancelled] of [
    ['cancelled', ['resp_1']],
    ['handover', []],
    [new Error('silent'), []],
  ] as const) {
    await onStage(
      'responses',
      [{ text: 'One two three.', stallAt: body => body.indexOf('\n\n', body.indexOf('One ')) + 2 }],
      async ({ provider, server }) => {
        const controller = new AbortController()
        const batches: (readonly ModelDelta[])[] = []
        const reading = hear(provider, { signal: controller.signal }, batches)
        await until(() => textOf(batches.flat()) !== '')
        controller.abort(reason)
        assert.is((await reading).error, reason)
        await until(() => server.left() === 1)
        if (cancelled.length > 0) await until(() => server.cancelled.length > 0)
        await new Promise(resolve => setTimeout(resolve, 20))
        assert.equal(server.cancelled, [...cancelled])
      },
      { options: 'background=1' },
    )
  }
})
test('an answer that the provider did not keep is refused; a failed one has failed', async () => {
  await onStage(
    'responses',
    [{ text: 'One', finish: 'error' }],
    async ({ provider, clock }) => {
      assert.match(
        (await hear(provider, { resume: { response: 'resp_other', at: 3 } })).error!.message,
        /refused.*404/,
      )
      assert.match((await passing(clock, hear(provider))).error!.message, /failed: .*server_error/)
    },
    { options: 'background=1' },
  )
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
