// Tool calls of an answer that broke off, over the API: which are made, and how often.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { dataOf, endEngines, saidIn, typesOf } from '../../../../test/support/engine.ts'
import { called, calls, resultsIn, says, text } from '../../../../test/support/scripted-model.ts'
import { broken, meet } from '../../../../test/support/runs/broken-model.ts'

test('accept: whole tool calls of a broken answer are made once, nothing asked again', async () => {
  const engine = await meet(function* (request, asked) {
    if (asked > 0) return yield* says(`I see ${resultsIn(request)[0]}`)
    yield [text('I look. '), called('c1', 'look')]
    throw broken()
  })
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
  assert.is(engine.bodies.length, 1)
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
      engine.bodies.length,
    ],
    [8, ['d1'], 1],
  )
  await engine.stop()
})

test.after(endEngines)
test.run()
