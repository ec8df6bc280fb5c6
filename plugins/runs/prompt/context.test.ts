// What the model reads and what is left out, for conversations, files and results of any size.
import fc from 'fast-check'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Message } from '#ports/models.ts'
import { callsAccepted, folded } from '../../../test/support/runs/records.ts'
import { contextOf, type Cut } from './context.ts'
import type { Conversation } from './conversation.ts'
import { estimateTokens } from '../price.ts'
import { event, stepBegins, toolWhole } from '../journal/records.ts'
import type { State } from '../journal/state.ts'

type Sizes = {
  context: number
  output: number
  request: number
  past: readonly (readonly [number, number | undefined])[]
  files: readonly number[]
  results: readonly number[]
}
const words = (length: number, mark: string) => mark.repeat(length).slice(0, length)
/** A run before its next model call. Each of its answers called one tool. */
function stateWith(results: readonly number[]): State {
  const records = results.flatMap((length, step) => [
    ...(step > 0 ? [stepBegins({ step, purpose: 'answer' as const })] : []),
    toolWhole({ step, attempt: 1, call: { id: `c${step}`, name: 'look', arguments: {} } }),
    callsAccepted(step),
    event('tool_result', {
      step,
      call_id: `c${step}`,
      name: 'look',
      status: 'ok',
      content: words(length, 'r'),
      truncated: false,
      artifact_id: null,
    }),
  ])
  return folded(...records)
}
function given({ context, output, request, past, files, results }: Sizes) {
  const run = {
    createdAt: 0,
    request: {
      message: words(request, 'q'),
      app_name: 'main',
      kb_enhance: false,
      plan: false,
      reasoning: false,
      client_tz: 'UTC',
    },
    terms: {
      supports: { tools: true, reasoning: true, prefill: true, resume: false },
      contextTokens: context,
      outputTokensMax: output,
      instruction: 'Answer.',
      onInterrupt: 'continue' as const,
    },
  }
  const conversation: Conversation = {
    request: run.request.message,
    past: past.map(([asked, said], i) => ({
      request: `${i}${words(asked, 'a')}`,
      answer: said === undefined ? undefined : words(said, 's'),
    })),
    attachments: files.map((length, i) => ({ name: `file${i}`, text: words(length, 'f') })),
  }
  const whole: Message[] = conversation.past.flatMap(({ request: asked, answer }): Message[] => [
    { role: 'user', content: asked },
    ...(answer === undefined ? [] : [{ role: 'assistant' as const, content: answer }]),
  ])
  return {
    conversation,
    whole,
    window: context - Math.min(output, Math.floor(context / 2)),
    ...contextOf(run, conversation, stateWith(results), { purpose: 'answer', planStepsMax: 5 }),
  }
}

const size = fc.oneof(fc.integer({ min: 1, max: 80 }), fc.integer({ min: 1, max: 4000 }))
const sizes: fc.Arbitrary<Sizes> = fc.record({
  context: fc.integer({ min: 100, max: 4000 }),
  output: fc.integer({ min: 1, max: 3000 }),
  request: size,
  past: fc.array(fc.tuple(size, fc.option(size, { nil: undefined, freq: 5 })), { maxLength: 8 }),
  files: fc.array(size, { maxLength: 4 }),
  results: fc.array(size, { maxLength: 4 }),
})
const nothingCut: Cut = {
  dropped_messages: 0,
  shortened_results: 0,
  dropped_attachment_characters: 0,
}

test("instruction, request and the run's own words stay whole, long results do not", () => {
  fc.assert(
    fc.property(sizes, all => {
      const { messages, attachments, conversation, window, cut = nothingCut } = given(all)
      assert.ok(
        messages[0]!.role === 'system' &&
          messages[0]!.content.startsWith('Answer.\nIt is Thu, 01 Jan 1970'),
      )
      const at = messages.findLastIndex(({ role }) => role === 'user')
      const own = messages.slice(at + 1)
      assert.is(messages[at]!.content, conversation.request)
      assert.equal(
        own.map(({ role }) => role),
        all.results.flatMap(() => ['assistant', 'tool']),
      )
      const heard = own
        .filter(({ role }) => role === 'tool')
        .map(({ content }, i) => ({ content, whole: all.results[i]! }))
      const shortened = heard.filter(({ content }) => content.includes('left out'))
      assert.is(shortened.length, cut.shortened_results)
      for (const { content, whole } of heard)
        assert.ok(
          shortened.some(one => one.content === content)
            ? /^r{600}\n\[\d+ characters left out\]$/.test(content) && content.length < whole
            : content.length === whole,
          'shortened to its beginning, and shorter, or whole',
        )
      const least = estimateTokens([messages[0]!, messages[at]!, ...own])
      if (least <= window)
        assert.ok(
          estimateTokens(messages, attachments) <= window,
          `${estimateTokens(messages, attachments)} of ${window}`,
        )
      else
        assert.equal(
          [messages.length, attachments],
          [own.length + 2, []],
          'where not even these fit, nothing else comes along',
        )
    }),
    { numRuns: 500 },
  )
})

test('the newest exchanges stay whole as far as they fit; the rest is told as left out', () => {
  fc.assert(
    fc.property(sizes, all => {
      const { messages, attachments, conversation, whole, window, cut = nothingCut } = given(all)
      const at = messages.findLastIndex(({ role }) => role === 'user')
      const past = messages.slice(1, at)
      assert.equal(past, whole.slice(whole.length - past.length))
      assert.is(cut.dropped_messages, whole.length - past.length)
      assert.ok(past.length === 0 || past[0]!.role === 'user', 'no answer without its request')
      const kept = attachments.reduce((sum, { text: its }) => sum + its.length, 0)
      const there = conversation.attachments.reduce((sum, { text: its }) => sum + its.length, 0)
      assert.is(cut.dropped_attachment_characters, there - kept)
      attachments.forEach(({ name, text: its }, i) =>
        assert.ok(
          name === `file${i}` &&
            (its === conversation.attachments[i]!.text || i === attachments.length - 1),
          'the first files, only the last of them cut',
        ),
      )
      const dropped = whole.length - past.length
      if (dropped > 0) {
        const exchange = whole.slice(
          whole[dropped - 1]!.role === 'assistant' ? dropped - 2 : dropped - 1,
          dropped,
        )
        assert.ok(
          estimateTokens([...messages, ...exchange], attachments) > window - 2 - all.past.length,
          'one more would have fitted',
        )
      }
    }),
    { numRuns: 500 },
  )
})

test('where everything fits, everything is there, and nothing is said of a cut', () => {
  const { messages, attachments, cut, whole, conversation } = given({
    context: 4000,
    output: 100,
    request: 50,
    past: [
      [20, 30],
      [20, undefined],
      [20, 30],
    ],
    files: [100, 200],
    results: [700, 700],
  })
  assert.equal(
    [cut, attachments, messages.slice(1, 6)],
    [undefined, conversation.attachments, whole],
  )
  assert.ok(messages.every(({ content }) => !content.includes('left out')))
})

test('old results give way first; files leave the past its part', () => {
  const results = given({
    context: 1000,
    output: 500,
    request: 10,
    past: [],
    files: [],
    results: [1000, 1000],
  })
  assert.equal(
    results.messages
      .filter(({ role }) => role === 'tool')
      .map(({ content }) => content.length === 1000),
    [false, true],
  )
  assert.equal(results.cut, { ...nothingCut, shortened_results: 1 })
  const files = given({
    context: 1000,
    output: 500,
    request: 10,
    past: [
      [40, 200],
      [40, 200],
    ],
    files: [8000],
    results: [],
  })
  assert.ok(
    files.messages.length > 2 &&
      files.attachments[0]!.text.length > 1000 &&
      files.cut!.dropped_attachment_characters > 5000,
  )
})

test.run()
