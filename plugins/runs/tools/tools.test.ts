// Tools, questions and plans in whole runs over the API.
import { Type as t } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, into } from '#kernel'
import type { StorageEngine } from '#ports/storage.ts'
import { loadPlugins } from '../../../kernel/loading/sources.ts'
import { readEvents, startServer, type SseEvent } from '../../../test/conformance/plugin/server.ts'
import { Tools, type Tool } from '../api.ts'
import { ToolInvocations } from './audit-log.ts'

const parameters = t.Object({ text: t.String() }, { additionalProperties: false })
const bodies: string[] = []
const make = (tool: Omit<Tool, 'parameters' | 'description'>): Tool => ({
  parameters,
  description: 'For a test.',
  ...tool,
})
const testTools: readonly Tool[] = [
  make({
    name: 'shout',
    effect: 'none',
    run: args => {
      bodies.push('shout')
      return { content: (args as { text: string }).text.toUpperCase() }
    },
  }),
  make({
    name: 'pay',
    approval: true,
    run: (args, { key }) => {
      bodies.push(`pay ${key}`)
      return { content: `paid ${(args as { text: string }).text}` }
    },
  }),
  make({ name: 'long', effect: 'none', run: () => ({ content: 'x'.repeat(40_000) }) }),
  make({
    name: 'fails',
    effect: 'none',
    run: () => {
      throw new Error('the other side said no')
    },
  }),
  make({
    name: 'slow',
    effect: 'none',
    timeoutMs: 50,
    run: (_, { signal }) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      ),
  }),
  make({ name: 'sluggish', timeoutMs: 50, run: () => new Promise(() => {}) }),
]
const plugin = definePlugin({
  name: 'test-tools',
  version: '1.0.0',
  kernel: '^1.0.0',
  contributes: testTools.map(tool => into(Tools, () => tool)),
})
const server = await startServer({
  plugins: [...(await loadPlugins()), plugin],
  env: {
    LIMITS_RUNS_PER_SECOND: '10000',
    LIMITS_RUNS_BURST: '10000',
    RUNS_SWEEP_MS: '50',
    RUNS_QUESTION_MS: '1500',
    DRAIN_MS: '100',
  },
})
const who = await server.account(1000)
type Started = { run_id: string; session_id: string }
const chat = async (message: string, more: object = {}) =>
  (await server.call('POST', '/chat', { token: who.token, body: { message, ...more } }))
    .body as Started
const read = async (runId: string, stop?: (event: SseEvent) => boolean) =>
  readEvents(await server.stream(who.token, runId), stop)
const answered = async (message: string, more: object = {}) =>
  read((await chat(message, more)).run_id)
const of = (list: readonly SseEvent[], type: string) =>
  list.filter(({ event }) => event === type).map(({ data }) => data)
const respond = (runId: string, questionId: unknown, answer: unknown) =>
  server.call('POST', `/runs/${runId}/respond`, {
    token: who.token,
    body: { question_id: questionId, answer },
  })

test('a call is announced, its result is told to all, and the audit keeps it', async () => {
  const { run_id: runId } = await chat('[[tool=shout {"text":"hello"}]]')
  const list = await read(runId)
  assert.equal(
    list.map(({ event }) => event),
    ['tool_call', 'tool_result', ...Array<string>(5).fill('token'), 'usage', 'done'],
  )
  assert.equal(
    of(list, 'tool_call').map(({ name, arguments: args, step }) => [name, args, step]),
    [['shout', { text: 'hello' }, 0]],
  )
  assert.equal(
    of(list, 'tool_result').map(({ status, content, truncated }) => [status, content, truncated]),
    [['ok', 'HELLO', false]],
  )
  assert.is(of(list, 'token')[0]!['step'], 1)
  assert.is(of(list, 'usage')[0]!['model_calls'], 2)
  const { items } = await server
    .engine<StorageEngine>('storage')
    .find(ToolInvocations, { where: { runId } })
  assert.equal(
    items.map(({ tool, effect, status, orgId, userId, step }) => [
      tool,
      effect,
      status,
      orgId,
      userId,
      step,
    ]),
    [['shout', 'none', 'ok', who.org_id, who.user_id, 0]],
  )
})

test('the model is told what is wrong with a call, and the run goes on', async () => {
  for (const [call, why] of [
    ['nobody {}', /There is no tool "nobody"/],
    ['shout {"text":1}', /^text: /],
    ['shout {"text":"a","more":1}', /^more: /],
    ['fails {"text":"x"}', /the other side said no/],
    ['slow {"text":"x"}', /longer than 50 ms/],
  ] as const) {
    const before = bodies.length
    const list = await answered(`[[tool=${call}]]`)
    const [result] = of(list, 'tool_result')
    assert.is(result!['status'], 'failed')
    assert.match(result!['content'] as string, why)
    assert.is(list.at(-1)!.data['status'], 'done')
    assert.is(bodies.length, before)
  }
})

test('a call that acts on the world and did not come back in time is told as unknown', async () => {
  assert.is(
    of(await answered('[[tool=sluggish {"text":"x"}]]'), 'tool_result')[0]!['status'],
    'unknown',
  )
})

test('a long result is kept whole as an artifact; the model reads its beginning', async () => {
  const { run_id: runId, session_id: sessionId } = await chat('[[tool=long {"text":"x"}]]')
  const list = await read(runId)
  const [result] = of(list, 'tool_result')
  const [artifact] = of(list, 'artifact')
  assert.is(result!['truncated'], true)
  assert.match(result!['content'] as string, /^x{16000}\n\[24000 more characters in the artifact /)
  assert.is(result!['artifact_id'], artifact!['artifact_id'])
  assert.is(
    (await server.call('GET', `/artifacts/${artifact!['artifact_id']}`, { token: who.token })).text
      .length,
    40_000,
  )
  const { items } = (
    await server.call('GET', `/sessions/${sessionId}/artifacts`, { token: who.token })
  ).body as { items: { id: string }[] }
  assert.equal(
    items.map(({ id }) => id),
    [artifact!['artifact_id']],
  )
})

test('a question holds nothing, takes one fitting answer, and the stream goes on', async () => {
  const { run_id: runId, session_id: sessionId } = await chat(
    '[[tool=ask_user {"question":"Which?","options":["red","blue"]}]]',
  )
  const [, question] = await read(runId, ({ event }) => event === 'user_choice')
  assert.equal(
    [question!.data['question'], question!.data['options']],
    [
      'Which?',
      [
        { id: 'a', label: 'red' },
        { id: 'b', label: 'blue' },
      ],
    ],
  )
  const state = async () =>
    (
      (await server.call('GET', `/sessions/${sessionId}`, { token: who.token })).body as {
        runs: { status: string }[]
      }
    ).runs[0]!.status
  while ((await state()) !== 'waiting') await new Promise(resolve => setTimeout(resolve, 10))
  while (!/runs_active\{state="active"\} 0/.test((await server.call('GET', '/metrics')).text))
    await new Promise(resolve => setTimeout(resolve, 10))
  const id = question!.data['question_id']
  for (const [answer, status] of [
    ['green', 400],
    [true, 400],
    [['a', 'b'], 400],
    [{ a: 'b' }, 400],
  ] as const)
    assert.is((await respond(runId, id, answer)).status, status, JSON.stringify(answer))
  assert.is((await respond(runId, crypto.randomUUID(), 'a')).status, 404)
  const rest = readEvents(
    await server.stream(who.token, runId, { 'last-event-id': String(question!.id) }),
  )
  const answers = await Promise.all(['a', 'b', 'a'].map(answer => respond(runId, id, answer)))
  assert.equal(answers.map(({ status }) => status).sort(), [200, 409, 409])
  const list = await rest
  assert.equal(list.map(({ event }) => event).slice(0, 2), ['choice_answer', 'tool_result'])
  assert.match(list[1]!.data['content'] as string, /^The user answered: (?:red|blue)$/)
  assert.is(list.at(-1)!.data['status'], 'done')
  assert.is((await respond(runId, id, 'a')).status, 409, 'late')
})

test('a question that nobody answers expires, and the model is told', async () => {
  const list = await answered('[[tool=ask_user {"question":"Anybody?","options":["yes","no"]}]]')
  assert.equal(
    of(list, 'choice_answer').map(({ status, answer }) => [status, answer]),
    [['expired', null]],
  )
  assert.equal(
    of(list, 'tool_result').map(({ status }) => status),
    ['declined'],
  )
})

test('a waiting run can be cancelled', async () => {
  const { run_id: runId } = await chat(
    '[[tool=ask_user {"question":"Anybody?","options":["yes","no"]}]]',
  )
  await read(runId, ({ event }) => event === 'user_choice')
  assert.is((await server.call('POST', `/runs/${runId}/cancel`, { token: who.token })).status, 200)
  assert.is((await read(runId)).at(-1)!.data['status'], 'cancelled')
})

test('an action that needs approval runs after a yes, and never after a no', async () => {
  for (const yes of [true, false]) {
    const before = bodies.length
    const { run_id: runId } = await chat('[[tool=pay {"text":"rent"}]]')
    const asked = (await read(runId, ({ event }) => event === 'approval')).at(-1)!
    assert.equal(
      [asked.data['action'], asked.data['arguments'], bodies.length],
      ['pay', { text: 'rent' }, before],
    )
    assert.is((await respond(runId, asked.data['question_id'], yes)).status, 200)
    const list = await read(runId)
    assert.equal(
      of(list, 'tool_result').map(({ status }) => status),
      [yes ? 'ok' : 'declined'],
    )
    assert.is(bodies.length, before + (yes ? 1 : 0))
  }
})

test('attachments are read by the model, also those of an earlier message', async () => {
  const offline = await startServer({ env: { MODELS_URL: 'offline:?interval_ms=0' } })
  const { token } = await offline.account(100)
  const content_base64 = Buffer.from(
    'The harbour of Brest was dredged in 1952. The crane weighs ninety tons.',
  ).toString('base64')
  const { upload_id: upload } = (
    await offline.call('POST', '/uploads', {
      token,
      body: { filename: 'harbour.txt', mime: 'text/plain', content_base64 },
    })
  ).body as { upload_id: string }
  const ask = async (body: object) => {
    const run = (await offline.call('POST', '/chat', { token, body })).body as Started
    return {
      run,
      text: of(await readEvents(await offline.stream(token, run.run_id)), 'token')
        .map(({ text }) => text)
        .join(''),
    }
  }
  const first = await ask({ message: 'When was the harbour dredged?', attachments: [upload] })
  assert.match(first.text, /1952[\s\S]*harbour\.txt/)
  assert.match(
    (await ask({ message: 'How much does the crane weigh?', session_id: first.run.session_id }))
      .text,
    /ninety tons/,
  )
  await offline.stop()
})

test('plan mode: a plan, its steps one after another, and the answer', async () => {
  const offline = await startServer({ env: { MODELS_URL: 'offline:?interval_ms=0' } })
  const { token } = await offline.account(100)
  const run = (
    await offline.call('POST', '/chat', {
      token,
      body: { message: 'First list the rivers, then compare their lengths.', plan: true },
    })
  ).body as Started
  const list = await readEvents(await offline.stream(token, run.run_id))
  const steps = of(list, 'plan')[0]!['steps'] as { title: string }[]
  assert.ok(steps.length >= 2)
  assert.equal(
    of(list, 'plan_step').map(({ index, status }) => [index, status]),
    steps.flatMap((_, index) => [
      [index, 'running'],
      [index, 'done'],
    ]),
  )
  assert.ok(of(list, 'token').length > 0)
  assert.ok(
    list.findIndex(({ event }) => event === 'token') >
      list.findLastIndex(({ event }) => event === 'plan_step'),
    'the answer comes after the plan',
  )
  assert.is(of(list, 'usage')[0]!['model_calls'], steps.length + 2)
  assert.is(list.at(-1)!.data['status'], 'done')
  await offline.stop()
})

test.after(() => server.stop())
test.run()
