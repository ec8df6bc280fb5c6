// Plan mode over the API: what the model is asked in each phase, and how a failed step goes on.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { dataOf, endEngines, saidIn, typesOf } from '../../../test/support/engine.ts'
import {
  called,
  calls,
  ends,
  lastWords,
  offered,
  resultsIn,
  says,
  text,
} from '../../../test/support/scripted-model.ts'
import { reportFailure } from './planning.ts'
import { phaseOf, plan, planner, steps } from '../../../test/support/runs/planner.ts'
import { startOffline } from '../../../test/support/runs/server.ts'

const fails = (reason: string) => [
  [called('f1', reportFailure.name, { reason }), called('x1', 'look'), ...ends('tool_calls')],
]

test('the model plans without tools, works with them, and answers from the results', async () => {
  const engine = await planner({
    plan: () => says('Here it is:\n1. look at it\n2) **write** it down'),
    work: (request, times) =>
      times === 0
        ? calls(called('c1', 'look'))
        : says(`result ${times} ${resultsIn(request).join()}`),
    answer: () => says('This is the answer.'),
  })
  const list = await engine.answered('Tell me of the harbour.', plan)
  const { requests } = engine.model
  assert.equal(requests.map(phaseOf), ['plan', 'work', 'work', 'work', 'answer'])
  assert.equal([offered(requests[0]!), offered(requests[4]!)], [[], []])
  assert.ok(
    [1, 2, 3].every(
      i =>
        offered(requests[i]!).includes('look') &&
        offered(requests[i]!).includes(reportFailure.name),
    ),
  )
  assert.equal(dataOf(list, 'plan'), [
    {
      revision: 1,
      from: 0,
      steps: [
        { index: 0, title: 'look at it' },
        { index: 1, title: '**write** it down' },
      ],
    },
  ])
  assert.equal(steps(list), [
    [0, 'running', ''],
    [0, 'done', 'result 1 a lighthouse'],
    [1, 'running', ''],
    [1, 'done', 'result 2'],
  ])
  assert.ok(
    requests.every(({ messages }) =>
      messages.some(
        ({ role, content }) => role === 'user' && content === 'Tell me of the harbour.',
      ),
    ),
  )
  assert.is(lastWords(requests[1]!), 'Carry out step 1 of 2: look at it')
  assert.is(
    lastWords(requests[3]!),
    'Results so far:\n1. look at it (done): result 1 a lighthouse\n\nCarry out step 2 of ' +
      '2: **write** it down',
  )
  assert.equal(
    resultsIn(requests[3]!),
    [],
    'what a step needed its tools for is not told to the next one',
  )
  assert.match(
    lastWords(requests[4]!),
    '1. look at it (done): result 1 a lighthouse\n2. **write** it down (done): result 2\n',
  )
  assert.equal(
    [saidIn(list), typesOf(list).filter(type => type === 'token').length, engine.bodies.length],
    ['This is the answer.', 1, 1],
  )
  assert.is(
    saidIn(list, 'reasoning'),
    'Here it is:\n1. look at it\n2) **write** it downresult 1 a lighthouseresult 2 ',
  )
  assert.is(dataOf(list, 'usage')[0]!['model_calls'], 5)
  await engine.stop()
})

test('a failed step leads to a new plan for the rest; its other calls are not made', async () => {
  const engine = await planner({
    plan: (_, times) =>
      says(times === 0 ? '1. walk\n2. swim\n3. rest' : '1. take the boat\n2. rest'),
    work: request =>
      /swim/.test(lastWords(request).split('Carry out')[1]!)
        ? fails('the water is cold')
        : says('well'),
  })
  const list = await engine.answered('Cross the river.', plan)
  assert.equal(
    dataOf(list, 'plan').map(({ revision, steps: titles }) => [
      revision,
      (titles as { index: number; title: string }[]).map(({ index, title }) => `${index} ${title}`),
    ]),
    [
      [1, ['0 walk', '1 swim', '2 rest']],
      [2, ['2 take the boat', '3 rest']],
    ],
  )
  assert.equal(steps(list), [
    [0, 'running', ''],
    [0, 'done', 'well'],
    [1, 'running', ''],
    [1, 'failed', 'the water is cold'],
    [2, 'running', ''],
    [2, 'done', 'well'],
    [3, 'running', ''],
    [3, 'done', 'well'],
  ])
  const replanned = engine.model.requests.filter(request => phaseOf(request) === 'plan')[1]!
  assert.match(
    lastWords(replanned),
    '1. walk (done): well\n2. swim (failed): the water is cold\n' +
      'Write a numbered plan of what is left',
  )
  assert.not.match(lastWords(replanned), /rest/)
  assert.ok(
    replanned.messages.every(({ role }) => role === 'system' || role === 'user'),
    'the calls of the step are its own',
  )
  assert.equal(
    [engine.bodies, dataOf(list, 'tool_call'), list.at(-1)!.data['status']],
    [[], [], 'done'],
  )
  await engine.stop()
})

test('with no further plan allowed, the answer says what failed and was left out', async () => {
  const engine = await planner(
    {
      plan: () => says('1. swim\n2. rest'),
      work: () => fails('the water is cold'),
      answer: request => says(lastWords(request)),
    },
    { RUNS_REPLANS_MAX: '1' },
  )
  const list = await engine.answered('Cross the river.', plan)
  assert.equal(engine.model.requests.map(phaseOf), ['plan', 'work', 'plan', 'work', 'answer'])
  assert.equal(
    steps(list).map(([index, status]) => [index, status]),
    [
      [0, 'running'],
      [0, 'failed'],
      [1, 'running'],
      [1, 'failed'],
      [2, 'skipped'],
    ],
  )
  assert.match(
    saidIn(list),
    '1. swim (failed): the water is cold\n2. swim (failed): the water is cold\n3. rest (skipped)',
  )
  assert.is(list.at(-1)!.data['status'], 'done')
  await engine.stop()
})

test('a step without a result, or whose result was withheld, has failed', async () => {
  for (const [result, why] of [
    [[ends()], /gave no result/],
    [[[text(' \n'), ...ends()]], /gave no result/],
    [[[text('half'), ...ends('filtered')]], /content filter/],
  ] as const) {
    const engine = await planner(
      { plan: () => says('1. try'), work: () => [...result] },
      { RUNS_REPLANS_MAX: '0' },
    )
    const list = await engine.answered('Try.', plan)
    assert.equal(
      steps(list).map(([, status]) => status),
      ['running', 'failed'],
    )
    assert.match(String(steps(list)[1]![2]), why)
    assert.is(list.at(-1)!.data['status'], 'done')
    await engine.stop()
  }
})

test('deliberation is asked for in every phase and shown before the answer alone', async () => {
  const engine = await planner({
    plan: () => [[{ type: 'reasoning', text: 'hidden ' }, text('1. go'), ...ends()]],
    work: () => [[{ type: 'reasoning', text: 'hidden ' }, text('gone'), ...ends()]],
    answer: () => [[{ type: 'reasoning', text: 'hm ' }, text('There.'), ...ends()]],
  })
  const list = await engine.answered('Go.', { ...plan, reasoning: true })
  assert.ok(engine.model.requests.every(({ reasoning }) => reasoning === true))
  assert.equal([saidIn(list, 'reasoning'), saidIn(list)], ['1. gogonehm ', 'There.'])
  await engine.stop()
})

test('where nothing was planned there is no such thing as reporting a failure', async () => {
  const engine = await planner({
    answer: (_, times) =>
      times === 0 ? calls(called('f1', reportFailure.name, { reason: 'no' })) : says('well'),
  })
  const list = await engine.answered('Go.')
  assert.not.ok(offered(engine.model.requests[0]!).includes(reportFailure.name))
  assert.match(
    String(dataOf(list, 'tool_result')[0]!['content']),
    /There is no tool "report_failure"/,
  )
  await engine.stop()
})

test('plan mode: a plan, its steps one after another, and the answer', async () => {
  const { server, ask } = await startOffline()
  const { list } = await ask({
    message: 'First list the rivers, then compare their lengths.',
    plan: true,
  })
  const planned = dataOf(list, 'plan')[0]!['steps'] as { title: string }[]
  assert.ok(planned.length >= 2)
  assert.equal(
    dataOf(list, 'plan_step').map(({ index, status }) => [index, status]),
    planned.flatMap((_, index) => [
      [index, 'running'],
      [index, 'done'],
    ]),
  )
  assert.ok(dataOf(list, 'token').length > 0)
  assert.ok(
    list.findIndex(({ event }) => event === 'token') >
      list.findLastIndex(({ event }) => event === 'plan_step'),
    'the answer comes after the plan',
  )
  assert.is(dataOf(list, 'usage')[0]!['model_calls'], planned.length + 2)
  assert.is(list.at(-1)!.data['status'], 'done')
  await server.stop()
})

test.after(endEngines)
test.run()
