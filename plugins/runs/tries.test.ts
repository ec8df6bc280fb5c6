// Model calls that break off, over the API: how each recovery asks the model again, what readers see of it, and what is charged.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fault } from '#kernel'
import { dataOf, endEngines, saidIn, startEngine, typesOf } from '../../test/kit/engine.ts'
import { called, calls, ends, resultsIn, says, text, type Deltas, type Play } from '../../test/kit/puppet.ts'
import type { Agent, Tool } from './api.ts'
import { continueInstruction } from './recover.ts'

type Model = NonNullable<Parameters<typeof startEngine>[1]>['model']
const broken = () => fault('MODEL_FAILED', { why: 'the line was cut' })
/** What the model says in each of its calls; `'cut'`: there the line breaks. */
const turns = (...list: readonly (readonly (Deltas | 'cut')[])[]): Play => function* (_, asked) {
  for (const batch of list[asked]!) {
    if (batch === 'cut') throw broken()
    yield batch
  }
}
const bodies: string[] = []
const look: Tool = { name: 'look', description: 'Looks.', parameters: { type: 'object' }, run: (_, { key }) => { bodies.push(key); return { content: 'a lighthouse' } } }
const careful: Agent = { key: 'careful', name: 'Careful', instruction: 'Answer.', onInterrupt: 'restart' }
const meet = (play: Play, model: Model = {}) => startEngine(play, { model, tools: [look], agents: [careful], credits: 100_000 })
const plain = { prefill: false, resume: false }
const mark = (at: number): Deltas => [{ type: 'checkpoint', checkpoint: { response: 'resp_7', at } }]

test('resume: the provider is asked to go on from the last mark, and what came after it is taken back', async () => {
  const engine = await meet(turns([[text('one '), text('two ')], mark(2), [text('thr')], 'cut'], [[text('three')], ends('stop', { inputTokens: 9, outputTokens: 3 })]), { supports: { resume: true } })
  const { run_id: id, session_id: sessionId } = await engine.chat('count'), list = await engine.read(id)
  assert.equal(typesOf(list), ['token', 'token', 'token', 'superseded', 'token', 'usage', 'done'])
  assert.equal(dataOf(list, 'superseded'), [{ step: 0, attempt: 1, keep: 8, reason: 'failed' }])
  assert.equal(engine.model.requests.map(({ resume }) => resume), [undefined, { response: 'resp_7', at: 2 }])
  assert.is(engine.model.requests[1]!.prefill, undefined)
  assert.equal(dataOf(list, 'usage').map(({ input_tokens: input, output_tokens: output, model_calls: times }) => [input, output, times]), [[9, 3, 1]], 'the provider counts the whole of a resumed answer')
  await engine.closed(id)
  const { items } = (await engine.call('GET', `/sessions/${sessionId}/messages`, { token: engine.who.token })).body as { items: { content: string }[] }
  assert.is(items[1]!.content, 'one two three')
  await engine.stop()
})

test('resume: where the provider has lost it, or refuses, the text that stands is continued in another way', async () => {
  for (const error of [fault('MODEL_REFUSED', { why: 'there is no such response' }), broken()]) {
    const engine = await meet(function* (_, asked) {
      if (asked === 0) yield* [[text('one ')], mark(1)]
      if (asked === 0) throw broken()
      if (asked === 1) throw error
      yield [text('two'), ...ends()]
    }, { supports: { resume: true } })
    const list = await engine.answered('count')
    assert.equal(engine.model.requests.map(({ resume, prefill }) => [resume?.response, prefill]), [[undefined, undefined], ['resp_7', undefined], [undefined, 'one ']])
    assert.equal([saidIn(list), list.at(-1)!.data['status']], ['one two', 'done'])
    await engine.stop()
  }
})

test('accept: whole tool calls of an answer that broke off are made, once, and nothing is asked or said again', async () => {
  const engine = await meet(function* (request, asked) {
    if (asked > 0) return yield* says(`I see ${resultsIn(request)[0]}`)
    yield [text('I look. '), called('c1', 'look')]
    throw broken()
  })
  bodies.length = 0
  const list = await engine.answered('what is there?')
  assert.equal(typesOf(list), ['token', 'tool_call', 'tool_result', 'token', 'usage', 'done'])
  assert.is(bodies.length, 1)
  assert.equal(engine.model.requests[1]!.messages.slice(-2), [{ role: 'assistant', content: 'I look. ', toolCalls: [{ id: 'c1', name: 'look', arguments: {} }] }, { role: 'tool', callId: 'c1', content: 'a lighthouse' }])
  assert.is(saidIn(list), 'I look. I see a lighthouse')
  // What the provider could not count any more is estimated: two tokens of text; the second call said ten.
  assert.equal(dataOf(list, 'usage').map(({ output_tokens: output, model_calls: times }) => [output, times]), [[12, 2]])
  await engine.stop()
})

test('where a further call had begun, none is made: the answer is continued and calls again', async () => {
  const engine = await meet(function* ({ prefill }, asked) {
    if (asked === 0) yield [text('I look. '), called('c1', 'look'), { type: 'tool_open', id: 'c2', name: 'look' }]
    if (asked === 0) throw broken()
    if (asked === 1) return yield* (prefill === 'I look. ' ? calls(called('d1', 'look')) : says('?'))
    yield* says('done')
  })
  bodies.length = 0
  const list = await engine.answered('what is there?')
  assert.equal(typesOf(list), ['token', 'superseded', 'tool_call', 'tool_result', 'token', 'usage', 'done'])
  assert.equal([dataOf(list, 'superseded')[0]!['keep'], dataOf(list, 'tool_call').map(({ call_id: id }) => id), bodies.length], [8, ['d1'], 1])
  await engine.stop()
})

const half = `${'The harbour was dredged and the pier was mended. '.repeat(9)}The lighthouse was built in `
test('instruct: a model that cannot be made to continue is told to, and what it repeats is not shown', async () => {
  const engine = await meet(turns([[text(half)], 'cut'], [[text('The lighthouse was'), text(' built in 1907.')], ends('stop', { inputTokens: 500, outputTokens: 9 })]), { supports: plain })
  const list = await engine.answered('tell'), [first, second] = engine.model.requests
  assert.equal(second!.messages, [...first!.messages, { role: 'assistant', content: half }, { role: 'user', content: continueInstruction }])
  assert.equal([second!.prefill, second!.resume], [undefined, undefined])
  assert.equal([dataOf(list, 'superseded')[0]!['keep'], saidIn(list)], [half.length, `${half}1907.`])
  assert.is(dataOf(list, 'usage')[0]!['output_tokens'], Math.ceil(half.length / 4) + 9, 'what stands of the first try is paid, though the second did not count it')
  await engine.stop()
})

test('prefill: the model is given its own beginning, without deliberation', async () => {
  const engine = await meet(turns([[{ type: 'reasoning', text: 'hm' }], [text('one ')], 'cut'], [[text('two'), ...ends()]]))
  const list = await engine.answered('count', { reasoning: true })
  assert.equal(engine.model.requests.map(({ reasoning, prefill }) => [reasoning, prefill]), [[true, undefined], [false, 'one ']])
  assert.equal([saidIn(list), dataOf(list, 'superseded')[0]!['keep']], ['one two', 4])
  await engine.stop()
})

test('restart: a short text, deliberation alone, or an agent that wants it so; nothing of the first try stays', async () => {
  for (const [supports, more, first] of [[plain, {}, text(half.slice(0, 399))], [{}, {}, { type: 'reasoning', text: half }], [{}, { app_name: 'careful' }, text(half)]] as const) {
    const engine = await meet(turns([[[first]], ['cut']].flat() as (Deltas | 'cut')[], [[text('whole'), ...ends('stop', { inputTokens: 4, outputTokens: 2 })]]), { supports, price: { inputPer1k: 0, outputPer1k: 1000, minimum: 1 } })
    const { run_id: id } = await engine.chat('tell', more), list = await engine.read(id), [one, two] = engine.model.requests
    assert.equal(two!.messages, one!.messages)
    assert.equal([two!.prefill, dataOf(list, 'superseded')], [undefined, [{ step: 0, attempt: 1, keep: 0, reason: 'failed' }]])
    assert.equal(dataOf(list, 'token').filter(({ attempt }) => attempt === 2).map(({ text: said }) => said), ['whole'])
    // A credit a token: the customer pays the two that were accepted; what the first try used is remembered for the operator.
    assert.equal(dataOf(list, 'usage').map(({ credits, output_tokens: output, model_calls: times }) => [credits, output, times]), [[2, 2, 1]])
    await engine.closed(id)
    const run = await engine.run(id), lost = (await engine.journal(run)).find(({ type }) => type === 'attempt@1')!.data as { lost: unknown }
    assert.equal([run.answer, run.credits], ['whole', 2])
    const input = Math.ceil(one!.messages.reduce((sum, { content }) => sum + content.length, 0) / 4)
    assert.equal(lost.lost, { inputTokens: input, outputTokens: first.type === 'text' ? Math.ceil(first.text.length / 4) : 0 })
    assert.is((await engine.balance()).balance, 100_000 - 2)
    await engine.stop()
  }
})

test('a call that never comes further is given up after so many tries and costs nothing; each step forward begins the count anew', async () => {
  const stuck = await meet(function* ({ prefill = '' }) {
    if (prefill === '') yield [text('one ')]
    throw broken()
  }), failed = await stuck.answered('count')
  assert.equal([stuck.model.requests.length, typesOf(failed), failed.at(-1)!.data['code'], dataOf(failed, 'usage')[0]!['credits']], [3, ['token', 'superseded', 'superseded', 'usage', 'error'], 'MODEL_FAILED', 0])
  assert.equal(await stuck.balance(), { balance: 100_000, held: 0, available: 100_000 })
  await stuck.stop()
  const slow = await meet(function* ({ prefill = '' }) {
    const words = ['one ', 'two ', 'three ', 'four ', 'five'], at = words.findIndex((_, i) => words.slice(0, i).join('') === prefill)
    yield [text(words[at]!)]
    if (at < words.length - 1) throw broken()
    yield ends()
  }), list = await slow.answered('count')
  assert.equal([slow.model.requests.length, saidIn(list), list.at(-1)!.data['status']], [5, 'one two three four five', 'done'])
  await slow.stop()
})

test('an answer that ends without its end is one that broke off; a provider that counts nothing is estimated', async () => {
  const engine = await meet(turns([[text('one ')]], [[text('two')], [{ type: 'finish', reason: 'stop' }]]))
  const list = await engine.answered('count')
  assert.equal([saidIn(list), dataOf(list, 'superseded').length], ['one two', 1])
  assert.is(dataOf(list, 'usage')[0]!['output_tokens'], 2, 'a token for what was kept, one for what was said')
  await engine.stop()
})

test.after(endEngines)
test.run()
