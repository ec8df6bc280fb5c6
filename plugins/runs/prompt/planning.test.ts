// Plan mode over the API: what the model is asked in each phase, how a failed step goes on, and
// where plans end. Also what a crash costs.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { dataOf, endEngines, saidIn, startEngine, typesOf } from '../../../test/support/engine.ts'
import {
  called,
  calls,
  ends,
  lastWords,
  offered,
  resultsIn,
  says,
  text,
  type Deltas,
} from '../../../test/support/scripted-model.ts'
import type { ModelRequest } from '#ports/models.ts'
import type { Tool } from '../api.ts'
import { reportFailure, stepsIn } from './planning.ts'
import { event, stepBegins, modelCallAccepted, leaseTaken } from '../journal/records.ts'

type Phase = 'plan' | 'work' | 'answer'
const phaseOf = ({ messages }: ModelRequest): Phase =>
  messages[0]!.content.includes('Write a numbered plan')
    ? 'plan'
    : messages[0]!.content.includes('Carry out one step')
      ? 'work'
      : 'answer'
const bodies: string[] = []
const look: Tool = {
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object' },
  effect: 'none',
  run: () => {
    bodies.push('look')
    return { content: 'a lighthouse' }
  },
}
type Script = Partial<Record<Phase, (request: ModelRequest, times: number) => Deltas[]>>
/** `times`: how often the model was asked in this phase before. */
async function planner(
  script: Script,
  env: Record<string, string> = {},
  more: Parameters<typeof startEngine>[1] = {},
) {
  const asked: Record<Phase, number> = { plan: 0, work: 0, answer: 0 }
  return startEngine(
    request => {
      const phase = phaseOf(request)
      return (script[phase] ?? (() => says(`the ${phase}`)))(request, asked[phase]++)
    },
    { tools: [look], env, ...more },
  )
}
const steps = (list: Parameters<typeof dataOf>[0]) =>
  dataOf(list, 'plan_step').map(({ index, status, detail }) => [index, status, detail])
const fails = (reason: string) => [
  [called('f1', reportFailure.name, { reason }), called('x1', 'look'), ...ends('tool_calls')],
]
const plan = { plan: true }

test('the model plans without tools, works with them, and answers from the results', async () => {
  const engine = await planner({
    plan: () => says('Here it is:\n1. look at it\n2) **write** it down'),
    work: (request, times) =>
      times === 0
        ? calls(called('c1', 'look'))
        : says(`result ${times} ${resultsIn(request).join()}`),
    answer: () => says('This is the answer.'),
  })
  bodies.length = 0
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
    [saidIn(list), typesOf(list).filter(type => type === 'token').length, bodies.length],
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
  bodies.length = 0
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
  assert.equal([bodies, dataOf(list, 'tool_call'), list.at(-1)!.data['status']], [[], [], 'done'])
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

test('steps of a plan, model calls of a run and rounds of a step are bounded', async () => {
  const many = Array.from({ length: 9 }, (_, i) => `${i + 1}. step ${i}`).join('\n')
  const few = await planner({ plan: () => says(many) }, { RUNS_PLAN_STEPS_MAX: '3' })
  const first = await few.answered('Go.', plan)
  assert.equal(
    [(dataOf(first, 'plan')[0]!['steps'] as unknown[]).length, few.model.requests.length],
    [3, 5],
  )
  assert.match(few.model.requests[0]!.messages[0]!.content, /at most 3 steps/)
  await few.stop()

  const short = await planner({ plan: () => says(many) }, { RUNS_STEPS_MAX: '5' })
  const second = await short.answered('Go.', plan)
  assert.equal(
    short.model.requests.map(phaseOf),
    ['plan', 'work', 'work', 'answer'],
    'one call is kept for the answer',
  )
  assert.equal(
    steps(second).map(([, status]) => status),
    ['running', 'done', 'running', 'done', ...Array<string>(7).fill('skipped')],
  )
  await short.stop()

  const eager = await planner(
    { plan: () => says('1. look'), work: (_, times) => calls(called(`c${times}`, 'look')) },
    { RUNS_ROUNDS_MAX: '3', RUNS_REPLANS_MAX: '0' },
  )
  bodies.length = 0
  const third = await eager.answered('Go.', plan)
  assert.equal(
    eager.model.requests
      .filter(request => phaseOf(request) === 'work')
      .map(request => offered(request).includes('look')),
    [true, true, false],
  )
  assert.equal(
    [bodies.length, steps(third).at(-1)],
    [2, [0, 'failed', 'The model gave no result.']],
    'a call that was not offered any more is not made',
  )
  await eager.stop()
})

test('a text without numbers is a plan of one step; long titles and results are cut', async () => {
  assert.equal(stepsIn('Just do it.\nReally.', 5), ['Just do it.'])
  assert.equal(stepsIn('Plan:\n 1. a\n**2.** b\n3) c\n- no\n4.no', 5), ['a', 'b', 'c'])
  assert.equal(stepsIn('', 5), [])
  assert.equal(
    stepsIn(`1. ${'x'.repeat(400)}`, 5).map(title => title.length),
    [300],
  )
  const engine = await planner({
    plan: () => says('1. write'),
    work: () => says('y'.repeat(5000)),
  })
  const list = await engine.answered('Write.', plan)
  assert.is((steps(list)[1]![2] as string).length, 4000)
  await engine.stop()
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

test('a crash within a step costs that step; the plan and earlier steps stay', async () => {
  const engine = await planner({
    plan: () => says('1. a\n2. b\n3. c'),
    work: request => says(`did ${lastWords(request).split(': ').at(-1)}`),
  })
  const accepted = (step: number) =>
    modelCallAccepted({ step, attempt: 1, finish: 'stop', input_tokens: 1, output_tokens: 1 })
  const shown = (step: number, words: string) =>
    event('reasoning', { text: words, step, attempt: 1 })
  const state = (index: number, status: string, detail = '') =>
    event('plan_step', { index, status, detail })
  const planned = [
    leaseTaken(1),
    stepBegins({ step: 0, purpose: 'plan' }),
    shown(0, '1. a\n2. b\n3. c'),
    accepted(0),
    event('plan', {
      revision: 1,
      from: 0,
      steps: [
        { index: 0, title: 'a' },
        { index: 1, title: 'b' },
        { index: 2, title: 'c' },
      ],
    }),
  ]
  const first = [
    state(0, 'running'),
    stepBegins({ step: 1, purpose: 'work' }),
    shown(1, 'did a'),
    accepted(1),
  ]
  const second = [
    state(0, 'done', 'did a'),
    state(1, 'running'),
    stepBegins({ step: 2, purpose: 'work' }),
    shown(2, 'half of it'),
  ]
  // Where the process died, and how many model calls are left. A step begins with one append.
  for (const [records, left] of [
    [planned.slice(0, 2), 5],
    [planned.slice(0, 3), 5],
    [planned.slice(0, 4), 4],
    [planned, 4],
    [[...planned, ...first.slice(0, 2)], 4],
    [[...planned, ...first], 3],
    [[...planned, ...first, ...second], 3],
  ] as const) {
    const before = engine.model.requests.length
    const run = await engine.left(records, { request: plan })
    const list = await engine.read(run.id)
    assert.is(engine.model.requests.length - before, left, `${records.length} records`)
    assert.equal([list.at(-1)!.data['status'], saidIn(list)], ['done', 'the answer'])
    assert.equal(
      dataOf(list, 'plan').map(({ revision }) => revision),
      [1],
    )
    assert.equal(
      steps(list)
        .filter(([, status]) => status === 'done')
        .map(([index, , detail]) => [index, detail]),
      [
        [0, 'did a'],
        [1, 'did b'],
        [2, 'did c'],
      ],
    )
    const broken =
      records.at(-1)!.type === 'reasoning'
        ? [{ step: records.length > 4 ? 2 : 0, attempt: 1, keep: 0, reason: 'interrupted' }]
        : []
    assert.equal(dataOf(list, 'superseded'), broken, `${records.length} records`)
    await engine.closed(run.id)
  }
  await engine.stop()
})

test.after(endEngines)
test.run()
