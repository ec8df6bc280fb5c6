// How a model call that broke off goes on, from journals made by hand: each plan, its conditions,
// and the text that stays.
import fc from 'fast-check'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { NewEvent } from '#ports/eventlog.ts'
import { stepBegins, leaseTaken, toolOpen, type Plan } from '../../journal/records.ts'
import { foldOne } from '../../journal/fold.ts'
import { recoveryOf } from './resume-plan.ts'
import { currentStep } from '../../journal/state.ts'
import {
  again,
  afterCall,
  folded,
  point,
  thinking,
  token,
  whole,
} from '../../../../test/support/runs/records.ts'

type Terms = Parameters<typeof recoveryOf>[1]

const open = toolOpen({ step: 0, attempt: 1, id: 'c9', name: 'known' })

const nothing: Terms = {
  supports: { tools: true, reasoning: true, prefill: false, resume: false },
  onInterrupt: 'continue',
  isValid: ({ name }) => name === 'known',
}
const prefill: Terms = { ...nothing, supports: { ...nothing.supports, prefill: true } }
const resume: Terms = { ...nothing, supports: { ...nothing.supports, prefill: true, resume: true } }
const restart = (terms: Terms): Terms => ({ ...terms, onInterrupt: 'restart' })
const without = (terms: Terms, ...plans: Plan[]): Terms => ({ ...terms, without: new Set(plans) })
const long = 'x'.repeat(400)

const rows: readonly (readonly [
  name: string,
  terms: Terms,
  records: readonly NewEvent[],
  plan: string,
  keep: number,
])[] = [
  [
    'nothing came: the call is made',
    resume,
    [leaseTaken(1), stepBegins({ step: 0, purpose: 'answer' })],
    'begin',
    0,
  ],
  ['nothing came of a second try', resume, [token('a'), again('restart', 0)], 'restart', 0],
  [
    'nothing came of a try that goes on after a text: the text is not forgotten',
    prefill,
    [token('abc'), again('prefill', 3)],
    'prefill',
    3,
  ],
  ['the provider kept it', resume, [token('abc'), point(1), token('def')], 'resume', 6],
  [
    'the newest mark counts',
    resume,
    [token('abc'), point(1), token('def'), point(2), token('g')],
    'resume',
    7,
  ],
  ['a mark before any text', resume, [thinking('hm'), point(0)], 'resume', 0],
  [
    'the provider kept it, but does not offer that (any more)',
    prefill,
    [token('abc'), point(1)],
    'prefill',
    3,
  ],
  [
    'a mark in the middle of a call is none',
    resume,
    [token('abc'), point(1), token('d'), open, point(2)],
    'resume',
    4,
  ],
  [
    'a resumed try that broke off is resumed again, from its own mark',
    resume,
    [token('abc'), point(1), again('resume', 3), token('de', 2), point(2)],
    'resume',
    5,
  ],
  [
    "another try makes the provider's answer void",
    resume,
    [token('abc'), point(1), again('prefill', 3)],
    'prefill',
    3,
  ],
  [
    'whole calls are taken',
    prefill,
    [token('I look it up'), whole('c1'), whole('c2')],
    'accept',
    12,
  ],
  ['whole calls without a text', nothing, [whole('c1')], 'accept', 0],
  [
    'a plan does not call, but what it called counts',
    nothing,
    [stepBegins({ step: 0, purpose: 'plan' }), whole('c1')],
    'accept',
    0,
  ],
  [
    'an unknown tool, or arguments that do not fit',
    prefill,
    [token('text'), whole('c1'), whole('c2', 'unknown')],
    'prefill',
    4,
  ],
  ['a further call had begun', prefill, [token('text'), whole('c1'), open], 'prefill', 4],
  [
    'the call that had begun became whole',
    prefill,
    [token('text'), open, whole('c9')],
    'accept',
    4,
  ],
  ['nothing but the beginning of a call', prefill, [open], 'restart', 0],
  ['its own words are continued', prefill, [token('abc'), token('def')], 'prefill', 6],
  ['deliberation without a text', prefill, [thinking('hm')], 'restart', 0],
  ['deliberation, then a text', prefill, [thinking('hm'), token('abc')], 'prefill', 3],
  [
    'a text, then deliberation again: the text was shown, and goes on',
    prefill,
    [token('abc'), thinking('hm')],
    'prefill',
    3,
  ],
  ['an instruction where nothing else goes', nothing, [token(long)], 'instruct', 400],
  ['however short the text is', nothing, [token('a')], 'instruct', 1],
  ['prefill was refused', without(prefill, 'prefill'), [token('abc')], 'instruct', 3],
  [
    'so was the instruction',
    without(prefill, 'prefill', 'instruct'),
    [token('abc')],
    'regenerate',
    3,
  ],
  [
    'nothing is left',
    without(prefill, 'prefill', 'instruct', 'regenerate'),
    [token('abc')],
    'end',
    3,
  ],
  [
    'the provider has lost what it kept',
    without(resume, 'resume'),
    [token('abc'), point(1), token('d')],
    'prefill',
    4,
  ],
  [
    'what sets an answer apart from the one before is no text',
    prefill,
    [...afterCall(), token('\n\n', 1, 1)],
    'restart',
    2,
  ],
  [
    'a text behind it goes on',
    prefill,
    [...afterCall(), token('\n\n', 1, 1), token('abc', 1, 1)],
    'prefill',
    5,
  ],
  [
    'a plan begins again',
    prefill,
    [stepBegins({ step: 0, purpose: 'plan' }), thinking(`1. ${long}`)],
    'restart',
    0,
  ],
  [
    'a step of a plan too',
    prefill,
    [stepBegins({ step: 0, purpose: 'work' }), thinking(long)],
    'restart',
    0,
  ],
  [
    'a plan is resumed where the provider kept it',
    resume,
    [stepBegins({ step: 0, purpose: 'plan' }), thinking('1. a'), point(1), thinking('\n2.')],
    'resume',
    4,
  ],
  [
    'the agent wants a new beginning: what was shown must come again',
    restart(prefill),
    [token(long)],
    'regenerate',
    400,
  ],
  ['and does not', without(restart(prefill), 'regenerate'), [token(long)], 'end', 400],
  ['nothing was shown', restart(prefill), [thinking('hm')], 'restart', 0],
  ['nor its calls', restart(prefill), [whole('c1')], 'restart', 0],
  [
    'but what the provider kept is the same answer',
    restart(resume),
    [token('abc'), point(1)],
    'resume',
    3,
  ],
]
for (const [name, terms, records, plan, keep] of rows)
  test(`${plan}: ${name}`, () =>
    assert.equal(recoveryOf(currentStep(folded(...records))!, terms), { plan, keep }))

test('what is kept stands in the journal; following the plan gives exactly that state', () => {
  const record = fc.oneof(
    { weight: 6, arbitrary: fc.string({ minLength: 1, maxLength: 300 }).map(text => token(text)) },
    fc.constantFrom(thinking('hm'), open, whole('c1'), whole('c2', 'unknown'), point(1)),
  )
  fc.assert(
    fc.property(
      fc.array(record, { minLength: 1, maxLength: 12, size: 'max' }),
      fc.constantFrom(nothing, prefill, resume, restart(nothing), restart(resume)),
      (records, terms) => {
        const state = folded(...records)
        const step = currentStep(state)!
        const { text } = step
        const { plan, keep } = recoveryOf(step, terms)
        assert.ok(keep <= text.length && (plan !== 'restart' || text === ''))
        // The same records lead to the same plan, in every process.
        assert.equal(recoveryOf(currentStep(folded(...records))!, terms), { plan, keep })
        if (plan === 'begin' || plan === 'accept' || plan === 'end') return
        // Shown text of an answer is never taken back.
        assert.is(keep, text.length)
        foldOne(state, { ...again(plan, keep), seq: records.length + 1 })
        assert.is(step.text, text.slice(0, keep))
        assert.equal(
          [step.attempt, step.open, step.shown, step.calls.length > 0],
          [2, undefined, false, plan === 'resume' && step.calls.length > 0],
        )
        if (plan !== 'resume') assert.is(step.checkpoint, undefined)
      },
    ),
  )
})

test.run()
