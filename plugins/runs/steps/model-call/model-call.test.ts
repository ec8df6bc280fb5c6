// Model calls that break off, over the API: how each plan asks the model again, and what readers
// see of it.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fault } from '#kernel'
import { dataOf, endEngines, saidIn, typesOf } from '../../../../test/support/engine.ts'
import { ends, text } from '../../../../test/support/scripted-model.ts'
import { continueInstruction } from './resume-plan.ts'
import {
  broken,
  half,
  mark,
  meet,
  plain,
  turns,
  type Model,
} from '../../../../test/support/runs/broken-model.ts'

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

test.after(endEngines)
test.run()
