// What a crash costs in plan mode.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { dataOf, endEngines, saidIn } from '../../../test/support/engine.ts'
import { lastWords, says } from '../../../test/support/scripted-model.ts'
import { event, stepBegins, modelCallAccepted, leaseTaken } from '../journal/records.ts'
import { plan, planner, steps } from '../../../test/support/runs/planner.ts'

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
