// The built-in tools as a run finds them: at the point, with arguments checked by their schemas.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin } from '#kernel'
import { createValidator } from '../../kernel/validation/validate.ts'
import { manualClock } from '../../adapters/clock/manual.ts'
import { startFiles } from '../../test/support/files-kit.ts'
import { Tools, type Tool, type ToolCallInfo } from '../runs/api.ts'
import { currentTime, localTime } from './current-time.ts'

let tools: (() => readonly Tool[]) | undefined
const reader = definePlugin({
  name: 'reader',
  version: '1.0.0',
  kernel: '^1.0.0',
  uses: { tools: Tools },
  start: deps => {
    tools = deps.tools
  },
})
const server = await startFiles({ plugins: [reader] })
const ann = await server.account()
const sessionId = server.sessionOf(ann)
const toolOf = (name: string) => tools!().find(tool => tool.name === name)!
const callOf = (more: Partial<ToolCallInfo> = {}): ToolCallInfo => ({
  orgId: ann.org_id,
  userId: ann.user_id,
  runId: crypto.randomUUID(),
  sessionId,
  key: crypto.randomUUID(),
  timeZone: 'Africa/Algiers',
  signal: new AbortController().signal,
  ...more,
})
const validator = createValidator()
const run = async (tool: Tool, args: unknown, call = callOf()) =>
  tool.run(validator.check('body', tool.parameters)(args) as never, call)
const refused = (tool: Tool, rows: readonly unknown[]) =>
  Promise.all(
    rows.map(args =>
      run(tool, args).then(
        () => assert.unreachable(JSON.stringify(args)),
        (error: Error & { code?: string }) =>
          assert.is(error.code, 'INVALID_FIELD', `${JSON.stringify(args)} ${error.message}`),
      ),
    ),
  )

test('five tools are contributed, each with a name, a description and a bounded schema', () => {
  const own = ['current_time', 'calculator', 'ask_user', 'ask_quiz', 'note']
  assert.equal(
    own.filter(name => tools!().some(tool => tool.name === name)),
    own,
  )
  for (const name of own) {
    const tool = toolOf(name)
    const { type, additionalProperties, properties } = tool.parameters as {
      type?: string
      additionalProperties?: boolean
      properties?: Record<string, { maxLength?: number; maxItems?: number; type?: string }>
    }
    assert.ok(tool.description.length > 40)
    assert.equal([type, additionalProperties], ['object', false], name)
    for (const [field, schema] of Object.entries(properties!))
      assert.ok(
        schema.type === 'boolean' || schema.maxLength || schema.maxItems,
        `${name}.${field} is bounded`,
      )
  }
  assert.equal(
    own.map(name => toolOf(name).effect),
    ['none', 'none', 'none', 'none', 'once'],
  )
})

const at = (iso: string) => Date.parse(iso)
test('the time is local, with the offset of the moment', () => {
  for (const [moment, zone, time, weekday] of [
    ['2026-11-21T12:00:00Z', 'UTC', '2026-11-21T12:00:00+00:00', 'Saturday'],
    ['2026-11-21T12:00:00Z', 'Africa/Algiers', '2026-11-21T13:00:00+01:00', 'Saturday'],
    ['2026-11-21T23:30:00Z', 'Asia/Kathmandu', '2026-11-22T05:15:00+05:45', 'Sunday'],
    ['2026-11-21T00:15:00Z', 'America/St_Johns', '2026-11-20T20:45:00-03:30', 'Friday'],
    ['2026-01-01T00:00:00Z', 'Pacific/Kiritimati', '2026-01-01T14:00:00+14:00', 'Thursday'],
    ['2024-02-29T23:59:59Z', 'Pacific/Pago_Pago', '2024-02-29T12:59:59-11:00', 'Thursday'],
    // Summer time: the hour that is left out, and the one that comes twice.
    ['2026-03-29T00:59:59Z', 'Europe/Paris', '2026-03-29T01:59:59+01:00', 'Sunday'],
    ['2026-03-29T01:00:00Z', 'Europe/Paris', '2026-03-29T03:00:00+02:00', 'Sunday'],
    ['2026-10-25T00:30:00Z', 'Europe/Paris', '2026-10-25T02:30:00+02:00', 'Sunday'],
    ['2026-10-25T01:30:00Z', 'Europe/Paris', '2026-10-25T02:30:00+01:00', 'Sunday'],
    ['2026-04-04T14:59:00Z', 'Australia/Lord_Howe', '2026-04-05T01:59:00+11:00', 'Sunday'],
    ['2026-04-04T15:00:00Z', 'Australia/Lord_Howe', '2026-04-05T01:30:00+10:30', 'Sunday'],
    ['2026-06-30T23:00:00Z', 'Europe/London', '2026-07-01T00:00:00+01:00', 'Wednesday'],
    ['2026-12-31T23:59:59Z', 'Europe/London', '2026-12-31T23:59:59+00:00', 'Thursday'],
  ] as const)
    assert.equal(
      localTime(at(moment), zone),
      { time, weekday, time_zone: zone },
      `${moment} in ${zone}`,
    )
})
test("the zone is the caller's unless another is named; the clock is the port's", async () => {
  const clock = manualClock(at('2026-07-14T10:00:00Z'))
  const tool = currentTime({ clock })
  assert.equal(await run(tool, {}), {
    content:
      '{"time":"2026-07-14T11:00:00+01:00","weekday":"Tuesday","time_zone":"Africa/Algiers"}',
  })
  await clock.advance(86_400_000)
  assert.equal(await run(tool, { time_zone: 'Asia/Tokyo' }), {
    content: '{"time":"2026-07-15T19:00:00+09:00","weekday":"Wednesday","time_zone":"Asia/Tokyo"}',
  })
  await refused(tool, [
    { time_zone: 'Mars/Olympus' },
    { time_zone: '' },
    { time_zone: 1 },
    { zone: 'UTC' },
    { time_zone: 'x'.repeat(65) },
    [],
    null,
  ])
})

test('a question has options with ids that stay, or is answered in words', async () => {
  const tool = toolOf('ask_user')
  const { ask } = (await run(tool, {
    question: 'Which?',
    options: ['red', 'blue', 'green'],
    multiple: true,
  })) as { ask: object }
  assert.equal(ask, {
    kind: 'user_choice',
    question: 'Which?',
    options: [
      { id: 'a', label: 'red' },
      { id: 'b', label: 'blue' },
      { id: 'c', label: 'green' },
    ],
    multiple: true,
    free: false,
  })
  assert.equal(await run(tool, { question: 'Why?' }), {
    ask: { kind: 'user_choice', question: 'Why?', options: [], multiple: false, free: true },
  })
  const { ask: many } = (await run(tool, {
    question: '?',
    options: Array.from({ length: 26 }, (_, i) => `${i}`),
    free: true,
  })) as unknown as { ask: { options: { id: string }[]; free: boolean } }
  assert.equal([many.options.at(-1)!.id, many.free], ['z', true])
  await refused(tool, [
    {},
    { question: '' },
    { question: 'x', options: [] },
    { question: 'x', options: ['same', 'same'] },
    { question: 'x', options: [''] },
    { question: 'x', options: Array.from({ length: 27 }, (_, i) => `${i}`) },
    { question: 'x', free: false },
    { question: 'x', multiple: 'yes' },
    { question: 'x', more: 1 },
    { question: 'x'.repeat(2001) },
  ])
})
test('a quiz has numbered items with options of their own', async () => {
  const tool = toolOf('ask_quiz')
  assert.equal(
    await run(tool, {
      title: 'Two',
      items: [
        { question: 'One?', options: ['yes', 'no'] },
        { question: 'Two?', options: ['1', '2', '3'] },
      ],
    }),
    {
      ask: {
        kind: 'quiz',
        title: 'Two',
        items: [
          {
            id: '1',
            question: 'One?',
            options: [
              { id: 'a', label: 'yes' },
              { id: 'b', label: 'no' },
            ],
          },
          {
            id: '2',
            question: 'Two?',
            options: [
              { id: 'a', label: '1' },
              { id: 'b', label: '2' },
              { id: 'c', label: '3' },
            ],
          },
        ],
      },
    },
  )
  await refused(tool, [
    {},
    { title: 'x', items: [] },
    { title: 'x', items: [{ question: 'x', options: ['one'] }] },
    { title: 'x', items: [{ question: 'x' }] },
    { title: '', items: [{ question: 'x', options: ['1', '2'] }] },
    { title: 'x', items: [{ question: 'x', options: ['1', '2'], answer: 1 }] },
    {
      title: 'x',
      items: Array.from({ length: 51 }, () => ({ question: 'x', options: ['1', '2'] })),
    },
  ])
})

test('a note becomes an artifact of its session, once for each call', async () => {
  const tool = toolOf('note')
  const call = callOf()
  assert.is(await tool.probe!(call.key, call), 'not done')
  const made = (await run(tool, { title: 'Plan: A/B\n…', text: '- one\n- zwei ü' }, call)) as {
    content: string
    artifact: object
  }
  const { artifact_id: id } = JSON.parse(made.content) as { artifact_id: string }
  assert.equal(made.artifact, { id, filename: 'Plan: A B ….md' })
  assert.equal(
    await tool.probe!(call.key, call),
    made,
    'the probe answers what the call would have',
  )
  assert.equal(await run(tool, { title: 'Plan', text: 'again' }, call), made)
  const { text, headers } = await server.call('GET', `/artifacts/${id}`, { token: ann.token })
  assert.is(text, '# Plan: A/B …\n\n- one\n- zwei ü\n')
  assert.is(headers.get('content-type'), 'text/markdown; charset=utf-8')
  assert.is(
    decodeURIComponent(headers.get('content-disposition')!.split("''")[1]!),
    'Plan: A B ….md',
  )
  const { items } = await server
    .artifacts()
    .list({ orgId: ann.org_id, userId: ann.user_id }, sessionId, {})
  assert.equal(
    items.map(({ id: each, run_id: runId }) => [each, runId]),
    [[id, call.runId]],
  )
  for (const title of ['..', '/', '\u0000', '😀'.repeat(100), 'x'.repeat(200), 'a\u202eb'])
    assert.ok((await run(tool, { title, text: 'x' })) as object, title)
  assert.is(
    await tool.probe!(call.key, callOf({ userId: crypto.randomUUID() })),
    'not done',
    "another user's call is another call",
  )
  await refused(tool, [
    {},
    { title: 'x' },
    { text: 'x' },
    { title: '', text: 'x' },
    { title: 'x', text: '' },
    { title: 'x', text: 1 },
    { title: 'x'.repeat(201), text: 'x' },
    { title: 'x', text: 'x', path: '/' },
  ])
})

test.after(() => server.stop())
test.run()
