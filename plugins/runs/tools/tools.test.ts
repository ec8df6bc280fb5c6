// Tool calls in whole runs over the API: their results, their failures, and the audit log.
import { Type as t } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { StorageEngine } from '#ports/storage.ts'
import type { Tool } from '../api.ts'
import { ToolInvocations } from './audit-log.ts'
import { startTools } from '../../../test/support/runs/server.ts'
import { dataOf } from '../../../test/support/engine.ts'

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

const { server, who, chat, read, answered } = await startTools(testTools)

test('a call is announced, its result is told to all, and the audit keeps it', async () => {
  const { run_id: runId } = await chat('[[tool=shout {"text":"hello"}]]')
  const list = await read(runId)
  assert.equal(
    list.map(({ event }) => event),
    ['tool_call', 'tool_result', ...Array<string>(5).fill('token'), 'usage', 'done'],
  )
  assert.equal(
    dataOf(list, 'tool_call').map(({ name, arguments: args, step }) => [name, args, step]),
    [['shout', { text: 'hello' }, 0]],
  )
  assert.equal(
    dataOf(list, 'tool_result').map(({ status, content, truncated }) => [
      status,
      content,
      truncated,
    ]),
    [['ok', 'HELLO', false]],
  )
  assert.is(dataOf(list, 'token')[0]!['step'], 1)
  assert.is(dataOf(list, 'usage')[0]!['model_calls'], 2)
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
    const [result] = dataOf(list, 'tool_result')
    assert.is(result!['status'], 'failed')
    assert.match(result!['content'] as string, why)
    assert.is(list.at(-1)!.data['status'], 'done')
    assert.is(bodies.length, before)
  }
})

test('a call that acts on the world and did not come back in time is told as unknown', async () => {
  assert.is(
    dataOf(await answered('[[tool=sluggish {"text":"x"}]]'), 'tool_result')[0]!['status'],
    'unknown',
  )
})

test('a long result is kept whole as an artifact; the model reads its beginning', async () => {
  const { run_id: runId, session_id: sessionId } = await chat('[[tool=long {"text":"x"}]]')
  const list = await read(runId)
  const [result] = dataOf(list, 'tool_result')
  const [artifact] = dataOf(list, 'artifact')
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

test.after(() => server.stop())
test.run()
