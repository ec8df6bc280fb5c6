// How a driver continues a run of another that asked its user. Journals are made by hand, end where
// a process may die, and are then driven over the real server.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { dataOf, endEngines, until } from '../../../../test/support/engine.ts'
import { event, leaseTaken } from '../../journal/records.ts'
import { accepted, began, startTakeover, wanted } from '../../../../test/support/runs/takeover.ts'

const { engine, bodies, goOn } = await startTakeover()

const question = (number: number) =>
  event('approval', {
    question_id: '00000000-0000-4000-8000-00000000000a',
    step: 0,
    call_id: 'c1',
    name: 'asks',
    action: 'asks',
    arguments: {},
    expires_at: new Date(Date.now() + 600_000).toISOString(),
    number,
  })
test('an answer not yet in the journal is heard; the question is not asked again', async () => {
  for (const [answer, expected, ran] of [
    [true, 'ok', 1],
    [false, 'declined', 0],
  ] as const) {
    const { list, results } = await goOn([leaseTaken(1), wanted('asks'), accepted, question(0)], {
      replies: 1,
      reply: { number: 0, status: 'answered', answer },
    })
    assert.equal(
      [
        dataOf(list, 'choice_answer').map(({ status, answer: given }) => [status, given]),
        dataOf(list, 'approval'),
        results[0]![0],
        bodies.length,
      ],
      [[['answered', answer]], [], expected, ran],
    )
  }
})

test('a question whose driver died before it could let go waits for its answer', async () => {
  const run = await engine.left([leaseTaken(1), wanted('asks'), accepted, question(0)])
  await until('it waits', async () => (await engine.run(run.id)).status === 'waiting')
  assert.is(
    (
      await engine.call('POST', `/runs/${run.id}/respond`, {
        token: engine.who.token,
        body: { question_id: '00000000-0000-4000-8000-00000000000a', answer: true },
      })
    ).status,
    200,
  )
  const list = await engine.read(run.id)
  assert.equal(
    [dataOf(list, 'approval').length, dataOf(list, 'tool_result').map(({ status }) => status)],
    [1, ['ok']],
  )
})

test('an approved body that may have begun is neither run nor asked for again', async () => {
  const heard = event('choice_answer', {
    question_id: '00000000-0000-4000-8000-00000000000a',
    step: 0,
    call_id: 'c1',
    status: 'answered',
    answer: true,
  })
  const { list, results } = await goOn(
    [leaseTaken(1), wanted('asks'), accepted, question(0), heard, began('asks')],
    { replies: 1 },
  )
  assert.equal(
    [bodies, results.map(([status]) => status), dataOf(list, 'approval')],
    [[], ['unknown'], []],
  )
})

test.after(endEngines)
test.run()
