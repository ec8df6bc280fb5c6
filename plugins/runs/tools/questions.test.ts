// Questions and approvals in whole runs over the API.
import { Type as t } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readEvents } from '../../../test/conformance/plugin/server.ts'
import type { Tool } from '../api.ts'
import { startTools } from '../../../test/support/runs/server.ts'
import { dataOf } from '../../../test/support/engine.ts'

const bodies: string[] = []
const pay: Tool = {
  name: 'pay',
  description: 'For a test.',
  parameters: t.Object({ text: t.String() }, { additionalProperties: false }),
  approval: true,
  run: (args, { key }) => {
    bodies.push(`pay ${key}`)
    return { content: `paid ${(args as { text: string }).text}` }
  },
}
const { server, who, chat, read, answered } = await startTools([pay])

const respond = (runId: string, questionId: unknown, answer: unknown) =>
  server.call('POST', `/runs/${runId}/respond`, {
    token: who.token,
    body: { question_id: questionId, answer },
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
    dataOf(list, 'choice_answer').map(({ status, answer }) => [status, answer]),
    [['expired', null]],
  )
  assert.equal(
    dataOf(list, 'tool_result').map(({ status }) => status),
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
      dataOf(list, 'tool_result').map(({ status }) => status),
      [yes ? 'ok' : 'declined'],
    )
    assert.is(bodies.length, before + (yes ? 1 : 0))
  }
})

test.after(() => server.stop())
test.run()
