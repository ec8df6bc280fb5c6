// Model calls that break off, over the API: how each plan asks the model again, what readers see of
// it, and what is charged.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fault } from '#kernel'
import { dataOf, endEngines, saidIn, startEngine, typesOf } from '../../../test/support/engine.ts'
import {
  called,
  calls,
  ends,
  resultsIn,
  says,
  text,
  type Deltas,
  type Play,
} from '../../../test/support/scripted-model.ts'
import type { Agent, Tool } from '../api.ts'
import { continueInstruction } from './resume-plan.ts'

type Model = NonNullable<Parameters<typeof startEngine>[1]>['model']
const broken = () => fault('MODEL_FAILED', { why: 'the line was cut' })
/** What the model says in each of its calls. At `'cut'` the connection breaks. */
const turns = (...list: readonly (readonly (Deltas | 'cut')[])[]): Play =>
  function* (_, asked) {
    for (const batch of list[asked]!) {
      if (batch === 'cut') throw broken()
      yield batch
    }
  }
const bodies: string[] = []
const look: Tool = {
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object' },
  run: (_, { key }) => {
    bodies.push(key)
    return { content: 'a lighthouse' }
  },
}
const careful: Agent = {
  key: 'careful',
  name: 'Careful',
  instruction: 'Answer.',
  onInterrupt: 'restart',
}
const meet = (play: Play, model: Model = {}, env: Record<string, string> = {}) =>
  startEngine(play, { model, tools: [look], agents: [careful], credits: 100_000, env })
const plain = { prefill: false, resume: false }
const mark = (at: number): Deltas => [
  { type: 'checkpoint', checkpoint: { response: 'resp_7', at } },
]

test('resume: the provider goes on from the last mark; nothing is shown twice', async () => {
  const engine = await meet(
    turns(
      [[text('one '), text('two ')], mark(2), [text('thr')], 'cut'],
      [[text('three')], ends('stop', { inputTokens: 9, outputTokens: 3 })],
    ),
    { supports: { resume: true } },
  )
  const { run_id: id, session_id: sessionId } = await engine.chat('count')
  const list = await engine.read(id)
  assert.equal(typesOf(list), ['token', 'token', 'token', 'superseded', 'token', 'usage', 'done'])
  assert.equal(dataOf(list, 'superseded'), [{ step: 0, attempt: 1, keep: 11, reason: 'failed' }])
  assert.equal(
    dataOf(list, 'token').map(({ text: said }) => said),
    ['one ', 'two ', 'thr', 'ee'],
  )
  assert.equal(
    engine.model.requests.map(({ resume }) => resume),
    [undefined, { response: 'resp_7', at: 2 }],
  )
  assert.is(engine.model.requests[1]!.prefill, undefined)
  assert.equal(
    dataOf(list, 'usage').map(
      ({ input_tokens: input, output_tokens: output, model_calls: times }) => [
        input,
        output,
        times,
      ],
    ),
    [[9, 3, 1]],
    'the provider counts the whole of a resumed answer',
  )
  await engine.closed(id)
  const { items } = (
    await engine.call('GET', `/sessions/${sessionId}/messages`, { token: engine.who.token })
  ).body as { items: { content: string }[] }
  assert.is(items[1]!.content, 'one two three')
  await engine.stop()
})

test('resume: where the provider cannot, the text is continued in another way', async () => {
  for (const error of [fault('MODEL_REFUSED', { why: 'there is no such response' }), broken()]) {
    const engine = await meet(
      function* (_, asked) {
        if (asked === 0) yield* [[text('one ')], mark(1)]
        if (asked === 0) throw broken()
        if (asked === 1) throw error
        yield [text('two'), ...ends()]
      },
      { supports: { resume: true } },
    )
    const list = await engine.answered('count')
    assert.equal(
      engine.model.requests.map(({ resume, prefill }) => [resume?.response, prefill]),
      [
        [undefined, undefined],
        ['resp_7', undefined],
        [undefined, 'one '],
      ],
    )
    assert.equal([saidIn(list), list.at(-1)!.data['status']], ['one two', 'done'])
    await engine.stop()
  }
})

test('accept: whole tool calls of a broken answer are made once, nothing asked again', async () => {
  const engine = await meet(function* (request, asked) {
    if (asked > 0) return yield* says(`I see ${resultsIn(request)[0]}`)
    yield [text('I look. '), called('c1', 'look')]
    throw broken()
  })
  bodies.length = 0
  const list = await engine.answered('what is there?')
  assert.equal(typesOf(list), [
    'token',
    'tool_call',
    'tool_result',
    'token',
    'token',
    'usage',
    'done',
  ])
  assert.is(bodies.length, 1)
  assert.equal(engine.model.requests[1]!.messages.slice(-2), [
    {
      role: 'assistant',
      content: 'I look. ',
      toolCalls: [{ id: 'c1', name: 'look', arguments: {} }],
    },
    { role: 'tool', callId: 'c1', content: 'a lighthouse' },
  ])
  assert.is(saidIn(list), 'I look. \n\nI see a lighthouse')
  // Uncounted usage is estimated: two tokens of text. The second call reported ten.
  assert.equal(
    dataOf(list, 'usage').map(({ output_tokens: output, model_calls: times }) => [output, times]),
    [[12, 2]],
  )
  await engine.stop()
})

test('after a further call had begun, none is made: the answer goes on, calls again', async () => {
  const engine = await meet(function* ({ prefill }, asked) {
    if (asked === 0)
      yield [text('I look. '), called('c1', 'look'), { type: 'tool_open', id: 'c2', name: 'look' }]
    if (asked === 0) throw broken()
    if (asked === 1) return yield* prefill === 'I look. ' ? calls(called('d1', 'look')) : says('?')
    yield* says('done')
  })
  bodies.length = 0
  const list = await engine.answered('what is there?')
  assert.equal(typesOf(list), [
    'token',
    'superseded',
    'tool_call',
    'tool_result',
    'token',
    'token',
    'usage',
    'done',
  ])
  assert.equal(
    [
      dataOf(list, 'superseded')[0]!['keep'],
      dataOf(list, 'tool_call').map(({ call_id: id }) => id),
      bodies.length,
    ],
    [8, ['d1'], 1],
  )
  await engine.stop()
})

const half =
  `${'The harbour was dredged and the pier was mended. '.repeat(9)}The lighthouse was built ` +
  'in '
test('instruct: a model is told to continue, and what it repeats is not shown', async () => {
  const engine = await meet(
    turns(
      [[text(half)], 'cut'],
      [
        [text('The lighthouse was'), text(' built in 1907.')],
        ends('stop', { inputTokens: 500, outputTokens: 9 }),
      ],
    ),
    { supports: plain },
  )
  const list = await engine.answered('tell')
  const [first, second] = engine.model.requests
  assert.equal(second!.messages, [
    ...first!.messages,
    { role: 'assistant', content: half },
    { role: 'user', content: continueInstruction },
  ])
  assert.equal([second!.prefill, second!.resume], [undefined, undefined])
  assert.equal(
    [dataOf(list, 'superseded')[0]!['keep'], saidIn(list)],
    [half.length, `${half}1907.`],
  )
  assert.is(
    dataOf(list, 'usage')[0]!['output_tokens'],
    Math.ceil(half.length / 4) + 9,
    'what stands of the first try is paid, though the second did not count it',
  )
  await engine.stop()
})

test('prefill: the model is given its own beginning, without deliberation', async () => {
  const engine = await meet(
    turns([[{ type: 'reasoning', text: 'hm' }], [text('one ')], 'cut'], [[text('two'), ...ends()]]),
  )
  const list = await engine.answered('count', { reasoning: true })
  assert.equal(
    engine.model.requests.map(({ reasoning, prefill }) => [reasoning, prefill]),
    [
      [true, undefined],
      [false, 'one '],
    ],
  )
  assert.equal([saidIn(list), dataOf(list, 'superseded')[0]!['keep']], ['one two', 4])
  await engine.stop()
})

test('restart: deliberation alone begins again; the customer pays the second try', async () => {
  const first = { type: 'reasoning', text: half } as const
  const model: Model = { price: { inputPer1k: 0, outputPer1k: 1000, minimum: 1 } }
  for (const more of [{}, { app_name: 'careful' }]) {
    const engine = await meet(
      turns(
        [[first], 'cut'],
        [[text('whole'), ...ends('stop', { inputTokens: 4, outputTokens: 2 })]],
      ),
      model,
    )
    const { run_id: id } = await engine.chat('tell', more)
    const list = await engine.read(id)
    const [one, two] = engine.model.requests
    assert.equal(two!.messages, one!.messages)
    assert.equal(
      [two!.prefill, dataOf(list, 'superseded')],
      [undefined, [{ step: 0, attempt: 1, keep: 0, reason: 'failed' }]],
    )
    // One credit a token: the customer pays for the two accepted tokens. The usage of the first try
    // is kept for the operator.
    assert.equal(
      dataOf(list, 'usage').map(({ credits, output_tokens: output, model_calls: times }) => [
        credits,
        output,
        times,
      ]),
      [[2, 2, 1]],
    )
    await engine.closed(id)
    const run = await engine.run(id)
    const lost = (await engine.journal(run)).find(({ type }) => type === 'attempt@1')!.data as {
      lost: { inputTokens: number; outputTokens: number }
    }
    assert.equal(
      [run.answer, run.credits, lost.lost.outputTokens],
      ['whole', 2, Math.ceil(half.length / 4)],
    )
    const said = Math.ceil(one!.messages.reduce((sum, { content }) => sum + content.length, 0) / 4)
    assert.ok(lost.lost.inputTokens > said, 'the tools that were offered count too')
    assert.is((await engine.balance()).balance, 100_000 - 2)
    await engine.stop()
  }
})

test('instruct: a short text goes on; a model that begins again is not heard twice', async () => {
  for (const [shown, again] of [
    ['It', 'It is 1907.'],
    ['It is 19', '07.'],
    ['It is ', 'It is 1907.'],
  ] as const) {
    const engine = await meet(
      turns([[text(shown)], 'cut'], [[text(again.slice(0, 3)), text(again.slice(3)), ...ends()]]),
      { supports: plain },
    )
    const list = await engine.answered('when?')
    assert.equal(
      [
        engine.model.requests[1]!.messages.at(-1)!.content,
        saidIn(list),
        list.at(-1)!.data['status'],
      ],
      [continueInstruction, 'It is 1907.', 'done'],
    )
    await engine.stop()
  }
})

test('regenerate: an agent goes on from where the same words end, or ends the run', async () => {
  for (const [again, said, ended] of [
    [`${half}1907.`, `${half}1907.`, 'done'],
    [`${half.slice(0, 60)} or so`, half, undefined],
  ] as const) {
    const engine = await meet(
      turns([[text(half)], 'cut'], [[text(again.slice(0, 90)), text(again.slice(90)), ...ends()]]),
    )
    const { run_id: id } = await engine.chat('tell', { app_name: 'careful' })
    const list = await engine.read(id)
    const [one, two] = engine.model.requests
    assert.equal(
      [two!.messages, two!.prefill, engine.model.requests.length],
      [one!.messages, undefined, 2],
    )
    assert.equal([saidIn(list), list.at(-1)!.data['status']], [said, ended])
    await engine.closed(id)
    assert.is((await engine.run(id)).answer, said)
    if (ended === undefined)
      assert.match(String(list.at(-1)!.data['detail']), /what stands is all there is/)
    await engine.stop()
  }
})

test('each refusal leads to the next way: no prefill, no instruction, the same words', async () => {
  const engine = await meet(
    function* ({ prefill, messages }, asked) {
      if (asked === 0) yield [text(half)]
      if (asked === 0) throw broken()
      if (prefill !== undefined || messages.at(-1)!.content === continueInstruction)
        throw fault('MODEL_REFUSED', { why: 'not like that' })
      yield [text(`${half}1907.`), ...ends()]
    },
    { supports: { prefill: true } },
    { RUNS_TRIES_MAX: '5' },
  )
  const list = await engine.answered('tell')
  assert.equal([engine.model.requests.length, saidIn(list)], [4, `${half}1907.`])
  await engine.stop()
})

test('whatever breaks, the fragments in a row are the answer that is kept', async () => {
  const whole = Array.from({ length: 60 }, (_, n) => `Sentence ${n} is here. `).join('')
  const play = async (model: NonNullable<Model>, more: object): Promise<void> => {
    const marks = model.supports?.resume === true
    const engine = await meet(
      function* ({ prefill, resume, messages }, asked) {
        const told =
          messages.at(-1)!.content === continueInstruction ? messages.at(-2)!.content : undefined
        let at = resume
          ? resume.at
          : prefill !== undefined
            ? prefill.length
            : told === undefined
              ? 0
              : Math.max(0, told.length - 20)
        for (let pieces = 0; at < whole.length; pieces++) {
          if (pieces === 3 && asked < 3) throw broken()
          yield [text(whole.slice(at, (at += 70)))]
          if (marks && pieces % 2 === 0) yield mark(Math.min(at, whole.length))
        }
        yield ends()
      },
      model,
      { RUNS_TRIES_MAX: '9' },
    )
    const { run_id: id } = await engine.chat('tell', more)
    const list = await engine.read(id)
    await engine.closed(id)
    assert.equal(
      [saidIn(list), (await engine.run(id)).answer, list.at(-1)!.data['status']],
      [whole, whole, 'done'],
    )
    await engine.stop()
  }
  const models: readonly NonNullable<Model>[] = [
    {},
    { supports: plain },
    { supports: { resume: true } },
    { supports: { prefill: false, resume: true } },
  ]
  await Promise.all(
    models.flatMap(model => [play(model, {}), play(model, { app_name: 'careful' })]),
  )
})

test('a run cancelled in mid-call pays for what was sent and all that was streamed', async () => {
  const price = { inputPer1k: 1000, outputPer1k: 1000, minimum: 1 }
  const engine = await meet(
    async function* (request, asked) {
      if (asked === 0) return yield* says('x'.repeat(4000), { inputTokens: 10, outputTokens: 10 })
      yield [{ type: 'reasoning', text: 'y'.repeat(400) }]
      yield [text('z'.repeat(40))]
      await new Promise((_, reject) =>
        request.signal.addEventListener('abort', () => reject(request.signal.reason)),
      )
    },
    { price, outputTokensMax: 2000 },
  )
  const { run_id: first, session_id: sessionId } = await engine.chat('begin')
  await engine.read(first)
  await engine.closed(first)
  const before = (await engine.balance()).balance
  const { run_id: id } = await engine.chat('go on', { session_id: sessionId, reasoning: true })
  await engine.read(id, ({ event }) => event === 'token')
  await engine.call('POST', `/runs/${id}/cancel`, { token: engine.who.token })
  const list = await engine.read(id)
  const [usage] = dataOf(list, 'usage')
  await engine.closed(id)
  assert.is(list.at(-1)!.data['status'], 'cancelled')
  assert.ok(
    (usage!['input_tokens'] as number) > 1000,
    `the history counts: ${usage!['input_tokens']} tokens`,
  )
  assert.is(usage!['output_tokens'], (400 + 40) / 4)
  assert.is(before - (await engine.balance()).balance, usage!['credits'])
  assert.is(usage!['credits'], (usage!['input_tokens'] as number) + 110)
  await engine.stop()
})

test('a call without progress is given up after some tries at no cost', async () => {
  const stuck = await meet(function* ({ prefill = '' }) {
    if (prefill === '') yield [text('one ')]
    throw broken()
  })
  const failed = await stuck.answered('count')
  assert.equal(
    [
      stuck.model.requests.length,
      typesOf(failed),
      failed.at(-1)!.data['code'],
      dataOf(failed, 'usage')[0]!['credits'],
    ],
    [3, ['token', 'superseded', 'superseded', 'usage', 'error'], 'MODEL_FAILED', 0],
  )
  assert.equal(await stuck.balance(), { balance: 100_000, held: 0, available: 100_000 })
  await stuck.stop()
  const slow = await meet(function* ({ prefill = '' }) {
    const words = ['one ', 'two ', 'three ', 'four ', 'five']
    const at = words.findIndex((_, i) => words.slice(0, i).join('') === prefill)
    yield [text(words[at]!)]
    if (at < words.length - 1) throw broken()
    yield ends()
  })
  const list = await slow.answered('count')
  assert.equal(
    [slow.model.requests.length, saidIn(list), list.at(-1)!.data['status']],
    [5, 'one two three four five', 'done'],
  )
  await slow.stop()
})

test('an answer without its end broke off; without counts, tokens are estimated', async () => {
  const engine = await meet(
    turns([[text('one ')]], [[text('two')], [{ type: 'finish', reason: 'stop' }]]),
  )
  const list = await engine.answered('count')
  assert.equal([saidIn(list), dataOf(list, 'superseded').length], ['one two', 1])
  assert.is(
    dataOf(list, 'usage')[0]!['output_tokens'],
    2,
    'a token for what was kept, one for what was said',
  )
  await engine.stop()
})

test.after(endEngines)
test.run()
