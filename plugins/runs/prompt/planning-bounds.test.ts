// The bounds of plan mode: steps, model calls, rounds, titles and results.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { dataOf, endEngines } from '../../../test/support/engine.ts'
import { called, calls, offered, says } from '../../../test/support/scripted-model.ts'
import { stepsIn } from './planning.ts'
import { phaseOf, plan, planner, steps } from '../../../test/support/runs/planner.ts'

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
  const third = await eager.answered('Go.', plan)
  assert.equal(
    eager.model.requests
      .filter(request => phaseOf(request) === 'work')
      .map(request => offered(request).includes('look')),
    [true, true, false],
  )
  assert.equal(
    [eager.bodies.length, steps(third).at(-1)],
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

test.after(endEngines)
test.run()
