// What a model call costs that broke off, was cancelled or never ended.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { dataOf, endEngines, saidIn, typesOf } from '../../../../test/support/engine.ts'
import { ends, says, text } from '../../../../test/support/scripted-model.ts'
import {
  broken,
  half,
  meet,
  turns,
  type Model,
} from '../../../../test/support/runs/broken-model.ts'

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
