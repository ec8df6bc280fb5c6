// How a model call that broke off goes on, from journals made by hand: each plan, its conditions,
// and the text that stays.
import fc from 'fast-check'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { NewEvent } from '#ports/eventlog.ts'
import {
  attemptBegins,
  checkpointed,
  event,
  stepBegins,
  modelCallAccepted,
  leaseTaken,
  toolOpen,
  toolWhole,
  type Plan,
} from '../journal/records.ts'
import { foldOne } from '../journal/fold.ts'
import { createRepeat, createSeam, isDiffering, recoveryOf, type Seam } from './resume-plan.ts'
import {
  answerOf,
  currentStep,
  emptyState,
  separatorBefore,
  usageOf,
  type State,
} from '../journal/state.ts'

type Terms = Parameters<typeof recoveryOf>[1]
const folded = (...records: readonly NewEvent[]): State =>
  records.reduce((state, record, i) => foldOne(state, { ...record, seq: i + 1 }), emptyState())
const token = (text: string, attempt = 1, step = 0) => event('token', { text, step, attempt })
const thinking = (text: string, step = 0) => event('reasoning', { text, step, attempt: 1 })
const whole = (id: string, name = 'known', step = 0) =>
  toolWhole({ step, attempt: 1, call: { id, name, arguments: {} } })
const open = toolOpen({ step: 0, attempt: 1, id: 'c9', name: 'known' })
const point = (at: number) => checkpointed({ step: 0, attempt: 1, response: 'r', at })
const again = (plan: Plan, keep: number, attempt = 2) =>
  attemptBegins({ step: 0, attempt, plan, keep, lost: { inputTokens: 1, outputTokens: 1 } })
const result = event('tool_result', {
  step: 0,
  call_id: 'c1',
  name: 'known',
  status: 'ok',
  content: '4',
  truncated: false,
  artifact_id: null,
})

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
/** An answer that called a tool; the next model call begins. */
const before: readonly NewEvent[] = [
  token('I look.'),
  whole('c1'),
  modelCallAccepted({
    step: 0,
    attempt: 1,
    finish: 'tool_calls',
    input_tokens: 1,
    output_tokens: 1,
  }),
  stepBegins({ step: 1, purpose: 'answer' }),
]

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
    [...before, token('\n\n', 1, 1)],
    'restart',
    2,
  ],
  [
    'a text behind it goes on',
    prefill,
    [...before, token('\n\n', 1, 1), token('abc', 1, 1)],
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

const through = (seam: Seam, pieces: readonly string[]) =>
  [...pieces.map(piece => seam.push(piece)), seam.end()].join('')
const seamed = (kept: string, pieces: readonly string[]) => through(createSeam(kept), pieces)
const repeated = (seen: string, pieces: readonly string[], fromStart = true) =>
  through(createRepeat(seen, { fromStart }), pieces)

test('a continuation that repeats the end of what stands is joined without a seam', () => {
  const kept = 'The lighthouse of the northern harbour was built in '
  assert.is(seamed(kept, ['was built in 1907.']), '1907.')
  assert.is(seamed(kept, ['of the nor', 'thern harbour was ', 'built in 19', '07.']), '1907.')
  assert.is(seamed(kept, ['1907.']), '1907.')
  assert.is(seamed('It is real', ['really so.']), 'really so.', 'a few letters are an accident')
  assert.is(seamed('', ['1907.']), '1907.')
})
test('a continuation that begins again is joined where it comes to what is new', () => {
  assert.is(seamed('It is', ['It ', 'is so.']), ' so.')
  const kept = Array.from({ length: 60 }, (_, n) => `sentence ${n} `).join('')
  assert.is(seamed(kept, [`${kept}and on`]), 'and on')
  assert.is(seamed(kept, [...`${kept}and on`].map(String)), 'and on')
  assert.is(
    seamed(kept, ['sentence 0 was the first.']),
    'sentence 0 was the first.',
    'the same few words are no new beginning',
  )
  assert.throws(() => seamed(kept, [`${kept.slice(0, 60)}in other words`]), isDiffering)
})
test('a seam loses and adds nothing for any cut; the longest repetition counts', () => {
  const words = fc
    .array(fc.constantFrom('the harbour ', 'was dredged ', 'in the year ', 'of '), {
      maxLength: 30,
      size: 'max',
    })
    .map(list => list.join(''))
  fc.assert(
    fc.property(
      words,
      words,
      fc.nat(250),
      fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 20 }),
      (kept, rest, back, cuts) => {
        const overlap = kept.slice(Math.max(0, kept.length - back))
        const said = overlap + rest
        const pieces: string[] = []
        let at = 0
        for (const cut of cuts) pieces.push(said.slice(at, (at += cut)))
        pieces.push(said.slice(at))
        const told = (act: () => string) => {
          try {
            return act()
          } catch (error) {
            assert.ok(isDiffering(error))
            return undefined
          }
        }
        const shown = told(() => seamed(kept, pieces))
        assert.is(
          shown,
          told(() => seamed(kept, [said])),
          'pieces do not matter',
        )
        if (shown === undefined) return void assert.ok(said.slice(0, 40) === kept.slice(0, 40))
        assert.ok(said.endsWith(shown))
        const dropped = said.slice(0, said.length - shown.length)
        assert.ok(kept.endsWith(dropped))
        assert.ok(
          dropped === '' || dropped === kept || (dropped.length >= 12 && dropped.length <= 200),
        )
        if (overlap.length >= 12 && overlap.length <= 200)
          assert.ok(dropped.length >= overlap.length)
      },
    ),
  )
})
test('what comes is held back only until the seam can be told', () => {
  const seam = createSeam('The lighthouse of the northern harbour was built in ')
  assert.equal(
    [seam.holds(), seam.push('the '), seam.holds(), seam.push('north'), seam.holds()],
    [false, '', true, '', true],
  )
  assert.equal(
    [seam.push(' it was'), seam.holds(), seam.push('.')],
    ['the north it was', false, '.'],
    'nothing that stands goes on like that',
  )
  assert.is(createSeam('x').push('a'), 'a')
})
test('what comes again is dropped only if it is the same to the last character', () => {
  assert.is(repeated('one two', ['one', ' two three']), ' three')
  assert.is(repeated('one two', ['one two']), '')
  assert.is(
    repeated('one two', ['\n', '\none two.']),
    '.',
    'line breaks in front count for nothing',
  )
  assert.is(repeated('\n two', ['\n two.'], false), '.', 'in the middle they do')
  for (const pieces of [['one or two'], ['one'], ['another']])
    assert.throws(() => repeated('one two', pieces), isDiffering)
  const seam = createRepeat('one', { fromStart: true })
  assert.equal(
    [seam.holds(), seam.push('on'), seam.holds(), seam.push('e!'), seam.holds()],
    [true, '', true, '!', false],
  )
})

test('the answer goes on a blank line below what was said before a tool was called', () => {
  const said = (first: string) =>
    separatorBefore(
      folded(
        token(first),
        whole('c1'),
        modelCallAccepted({
          step: 0,
          attempt: 1,
          finish: 'tool_calls',
          input_tokens: 1,
          output_tokens: 1,
        }),
        stepBegins({ step: 1, purpose: 'answer' }),
      ),
      1,
    )
  assert.equal(['I look.', 'I look.\n', 'I look.\n\n'].map(said), ['\n\n', '\n', ''])
  assert.is(separatorBefore(folded(...before), 0), '')
  assert.equal(
    [folded(...before, token('\n\n', 1, 1), token('abc', 1, 1)).steps[1]!].map(({ text, lead }) => [
      text,
      lead,
    ]),
    [['\n\nabc', 2]],
  )
})

test('a driver that died is counted for what it was at, until that is over', () => {
  const died = (epoch: number) => leaseTaken(epoch, 'p', true)
  const call = event('tool_call', { step: 0, call_id: 'c1', name: 'known', arguments: {} })
  const accepted = [
    whole('c1'),
    whole('c2'),
    modelCallAccepted({
      step: 0,
      attempt: 1,
      finish: 'tool_calls',
      input_tokens: 1,
      output_tokens: 1,
    }),
  ]
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
