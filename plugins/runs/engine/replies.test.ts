// Answers to questions over the API: in any order, by the label, without the id. Also while a
// driver works on other calls of the same answer.
import { Type as t } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  dataOf,
  endEngines,
  lasting,
  startEngine,
  typesOf,
  until,
  type Engine,
} from '../../../test/support/engine.ts'
import {
  called,
  calls,
  door,
  lastWords,
  resultsIn,
  says,
  type Play,
} from '../../../test/support/scripted-model.ts'
import type { Tool } from '../api.ts'

let slow = door()
let began = 0
const waits = async () => {
  began++
  await slow.passed
  return { content: 'paid' }
}
const options = [
  { id: 'a', label: 'Apples' },
  { id: 'b', label: 'Pears' },
  { id: 'c', label: 'Same' },
  { id: 'd', label: 'Same' },
]
const tools: readonly Tool[] = [
  {
    name: 'choose',
    description: 'Asks.',
    parameters: t.Object({ question: t.String() }),
    effect: 'none',
    run: args => ({
      ask: {
        kind: 'user_choice',
        question: (args as { question: string }).question,
        options,
        multiple: false,
        free: false,
      },
    }),
  },
  {
    name: 'pay',
    description: 'Pays.',
    parameters: t.Object({}),
    effect: 'once',
    parallel: true,
    run: waits,
  },
  { name: 'seek', description: 'Looks.', parameters: t.Object({}), effect: 'none', run: waits },
  {
    name: 'sends',
    description: 'Sends.',
    parameters: t.Object({}),
    approval: true,
    run: () => ({ content: 'sent' }),
  },
]
const ask = (id: string, question: string) => called(id, 'choose', { question })
const play: Play = request => {
  if (resultsIn(request).length > 0) return says('answered')
  const words = lastWords(request)
  if (words === 'two') return calls(ask('a', 'first?'), ask('b', 'second?'))
  if (words === 'approve') return calls(called('a', 'sends'), called('b', 'sends'))
  return calls(ask('a', 'sure?'), called('b', words))
}
const asked = (engine: Engine, id: string, count = 1) => {
  const questions = async () =>
    (await engine.journal(await engine.run(id)))
      .filter(({ type }) => type === 'user_choice' || type === 'approval')
      .map(({ data }) => (data as { question_id: string }).question_id)
  return until(`${count} questions`, async () => (await questions()).length >= count).then(
    questions,
  )
}
const respond = (engine: Engine, id: string, body: object) =>
  engine.call('POST', `/runs/${id}/respond`, { token: engine.who.token, body })
const waiting = (engine: Engine, id: string) =>
  until(`run ${id} waits`, async () => (await engine.run(id)).status === 'waiting')
const one = await startEngine(play, { tools })

test('two questions of one answer are each answered once, in any order', async () => {
  for (const reversed of [false, true]) {
    const { run_id: id } = await one.chat('two')
    await waiting(one, id)
    const [first, second] = await asked(one, id, 2)
    const order = reversed ? [second, first] : [first, second]
    const ambiguous = await respond(one, id, { answer: 'a' })
    assert.equal(
      [ambiguous.status, (ambiguous.body as { detail: string }).detail],
      [400, 'question_id: is needed, for 2 questions are open.'],
    )
    assert.is((await respond(one, id, { question_id: order[0], answer: 'a' })).status, 200)
    assert.equal([(await respond(one, id, { question_id: order[0], answer: 'b' })).status], [409])
    // The last open question needs no id.
    const left = await respond(one, id, { answer: 'b' })
    assert.equal([left.status, (left.body as { question_id: string }).question_id], [200, order[1]])
    const list = await one.read(id)
    const results = dataOf(list, 'tool_result')
      .map(({ call_id: call, content }) => [call, content])
      .sort()
    assert.equal(
      results,
      (reversed ? ['Pears', 'Apples'] : ['Apples', 'Pears']).map((label, i) => [
        ['a', 'b'][i],
        `The user answered: ${label}`,
      ]),
    )
    assert.is(dataOf(list, 'choice_answer').length, 2)
    assert.equal(
      [(await respond(one, id, { answer: 'a' })).status, list.at(-1)!.data['status']],
      [409, 'done'],
    )
  }
})

test('both at once: each is taken', async () => {
  const { run_id: id } = await one.chat('two')
  const questions = await asked(one, id, 2)
  const answers = await Promise.all(
    questions.map(question => respond(one, id, { question_id: question, answer: 'a' })),
  )
  assert.equal(
    answers.map(({ status }) => status),
    [200, 200],
  )
  assert.equal([(await one.read(id)).at(-1)!.data['status']], ['done'])
})

test("a unique label counts like its option's id; the answer is kept by the id", async () => {
  const { run_id: id } = await one.chat('two')
  const [first] = await asked(one, id, 2)
  for (const answer of ['Same', 'apples?'])
    assert.is((await respond(one, id, { question_id: first, answer })).status, 400)
  assert.is((await respond(one, id, { question_id: first, answer: 'Pears' })).status, 200)
  assert.is((await respond(one, id, { answer: 'd' })).status, 200)
  assert.equal(
    dataOf(await one.read(id), 'choice_answer').map(({ answer }) => answer),
    ['b', 'd'],
  )
})

test('an answer that is too large is refused by its bytes', async () => {
  const { run_id: id } = await one.chat('two')
  const [first] = await asked(one, id, 2)
  const { status, text } = await respond(one, id, {
    question_id: first,
    answer: Array.from({ length: 40 }, () => '漢'.repeat(2000)),
  })
  assert.is(status, 400)
  assert.match(text, /answer: takes \d+ bytes, more than 65536/)
  await one.call('POST', `/runs/${id}/cancel`, { token: one.who.token })
  await one.read(id)
})

test('what the user declined has its tool_call before its tool_result', async () => {
  const { run_id: id } = await one.chat('approve')
  for (const answer of [false, true]) {
    await waiting(one, id)
    assert.is((await respond(one, id, { answer })).status, 200)
    if (!answer) await asked(one, id, 2)
  }
  const list = await one.read(id)
  assert.equal(
    typesOf(list).filter(type => type.startsWith('tool_')),
    ['tool_call', 'tool_result', 'tool_call', 'tool_result'],
  )
  assert.equal(
    dataOf(list, 'tool_result').map(({ status }) => status),
    ['declined', 'ok'],
  )
})

test('an answer leaves the run with its busy driver: no tool runs twice', async () => {
  const given = lasting({ exclusive: false })
  const env = { RUNS_LEASE_MS: '15000', AUTH_SECRET: 'x'.repeat(48) }
  const a = await startEngine(play, { tools, given, env })
  const b = await startEngine(play, { tools, given, env, who: a.who })
  for (const tool of ['pay', 'seek']) {
    slow = door()
    began = 0
    const { run_id: id } = await a.chat(tool)
    await until('the tool is at work', () => began === 1)
    const [question] = await asked(a, id)
    const before = await a.run(id)
    assert.is((await respond(b, id, { question_id: question, answer: 'a' })).status, 200)
    const after = await b.run(id)
    assert.equal([after.owner, after.epoch], [before.owner, before.epoch])
    // Meanwhile both processes sweep.
    await new Promise(resolve => setTimeout(resolve, 150))
    slow.open()
    const results = dataOf(await a.read(id), 'tool_result')
      .map(({ name, status }) => [name, status])
      .sort()
    assert.equal(
      [began, results],
      [
        1,
        [
          ['choose', 'ok'],
          [tool, 'ok'],
        ].sort(),
      ],
    )
  }
  await a.stop()
  await b.stop()
})

test.after(endEngines)
test.run()
