// What a run's records fold to: progress, deaths, and what of the answer counts.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { NewEvent } from '#ports/eventlog.ts'
import { event, stepBegins, modelCallAccepted, leaseTaken } from './records.ts'
import { answerOf, separatorBefore, usageOf } from './state.ts'
import {
  again,
  afterCall,
  callsAccepted,
  folded,
  point,
  thinking,
  token,
  whole,
} from '../../../test/support/runs/records.ts'

const result = event('tool_result', {
  step: 0,
  call_id: 'c1',
  name: 'known',
  status: 'ok',
  content: '4',
  truncated: false,
  artifact_id: null,
})

test('tries and drivers are counted until something new is brought forward', () => {
  const counts = (...records: NewEvent[]) => {
    const { takes, tries } = folded(...records)
    return [takes, tries]
  }
  const start = [leaseTaken(1), token('abc')]
  assert.equal(counts(...start), [0, 0])
  assert.equal(
    counts(...start, leaseTaken(2), again('restart', 0), leaseTaken(3), again('restart', 0, 3)),
    [2, 2],
  )
  assert.equal(
    counts(...start, leaseTaken(2), again('restart', 0), token('abc', 2)),
    [1, 1],
    'the same again is no progress',
  )
  assert.equal(counts(...start, leaseTaken(2), again('restart', 0), token('abcd', 2)), [0, 0])
  assert.equal(counts(...start, leaseTaken(2), again('prefill', 3), token('d', 2)), [0, 0])
  assert.equal(
    counts(...start, leaseTaken(2), again('restart', 0), thinking('hm')),
    [1, 1],
    'deliberation is none: it cannot be continued',
  )
  assert.equal(
    counts(
      stepBegins({ step: 0, purpose: 'work' }),
      thinking('abc'),
      leaseTaken(2),
      again('restart', 0),
      thinking('abcd'),
    ),
    [0, 0],
    'the work on a plan is',
  )
  for (const forward of [
    modelCallAccepted({ step: 0, attempt: 2, finish: 'stop', input_tokens: 1, output_tokens: 1 }),
    stepBegins({ step: 1, purpose: 'answer' }),
    result,
  ])
    assert.equal(
      counts(...start, leaseTaken(2), again('restart', 0), forward),
      [0, 0],
      forward.type,
    )
})

test("an attempt's records do not mix with the next's; only what was accepted is used", () => {
  const state = folded(
    token('wrong '),
    whole('c1'),
    again('restart', 0),
    token('right', 2),
    modelCallAccepted({ step: 0, attempt: 2, finish: 'stop', input_tokens: 7, output_tokens: 2 }),
    stepBegins({ step: 1, purpose: 'answer' }),
    token('lost', 1, 1),
  )
  assert.equal(
    [answerOf(state), state.steps[0]!.calls, state.steps[0]!.attempt],
    ['rightlost', [], 2],
  )
  assert.equal(usageOf(state), { inputTokens: 7, outputTokens: 2 })
})

test('a call that a resumed answer brings a second time is one call', () => {
  const state = folded(whole('c1'), point(1), again('resume', 0), whole('c1'), whole('c2'))
  assert.equal(
    state.steps[0]!.calls.map(({ call }) => call.id),
    ['c1', 'c2'],
  )
})

test('the answer goes on a blank line below what was said before a tool was called', () => {
  const said = (first: string) => separatorBefore(folded(...afterCall(first)), 1)
  assert.equal(['I look.', 'I look.\n', 'I look.\n\n'].map(said), ['\n\n', '\n', ''])
  assert.is(separatorBefore(folded(...afterCall()), 0), '')
  assert.equal(
    [folded(...afterCall(), token('\n\n', 1, 1), token('abc', 1, 1)).steps[1]!].map(
      ({ text, lead }) => [text, lead],
    ),
    [['\n\nabc', 2]],
  )
})

test('a driver that died is counted for what it was at, until that is over', () => {
  const died = (epoch: number) => leaseTaken(epoch, 'p', true)
  const call = event('tool_call', { step: 0, call_id: 'c1', name: 'known', arguments: {} })
  const accepted = [whole('c1'), whole('c2'), callsAccepted()]
  const deaths = (...records: NewEvent[]) => {
    const { steps, deaths: model } = folded(leaseTaken(1), ...records)
    return [model.times, ...(steps[0]?.calls ?? []).map(one => one.deaths)]
  }
  assert.equal(deaths(died(2), died(3)), [2], 'before anything came')
  assert.equal(deaths(leaseTaken(2), died(3)), [1], 'one that gave the run back is none')
  assert.equal(
    deaths(died(2), token('a'), died(3)),
    [1],
    'a model call that came further is another one',
  )
  assert.equal(deaths(token('a'), died(2), again('prefill', 1), died(3)), [2])
  assert.equal(
    deaths(...accepted, died(2)),
    [0, 1, 0],
    'the next one, where no intent was written down',
  )
  assert.equal(deaths(...accepted, call, died(2), died(3)), [0, 2, 0])
  assert.equal(deaths(...accepted, call, died(2), result, died(3)), [0, 1, 1])
})

test.run()
