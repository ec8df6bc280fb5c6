// What readers are told of a conversation that exceeds the model's window, over the API.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { dataOf, endEngines, startEngine, typesOf } from '../../../test/support/engine.ts'
import {
  called,
  ends,
  lastWords,
  resultsIn,
  says,
  text,
} from '../../../test/support/scripted-model.ts'
import type { Tool } from '../api.ts'
import type { Cut } from './context.ts'
import { estimateTokens } from '../price.ts'

const nothingCut: Cut = {
  dropped_messages: 0,
  shortened_results: 0,
  dropped_attachment_characters: 0,
}

const long: Tool = {
  name: 'long',
  description: 'Says much.',
  parameters: { type: 'object' },
  effect: 'none',
  run: () => ({ content: 'r'.repeat(1500) }),
}
const short: Tool = { ...long, name: 'short', run: () => ({ content: 'r' }) }
const small = { contextTokens: 800, outputTokensMax: 100 }
test('a conversation beyond the window goes on; readers are told once what is left', async () => {
  const engine = await startEngine(
    request => {
      const tool = { look: 'long', brief: 'short' }[lastWords(request)]
      const heard = resultsIn(request).length
      return tool && heard < 2
        ? [[text('I look. '), called(`c${heard}`, tool), ...ends('tool_calls')]]
        : says('s'.repeat(1350))
    },
    { model: small, tools: [long, short] },
  )
  const { run_id: id, session_id } = await engine.chat('first')
  await engine.read(id)
  assert.not.ok(typesOf(await engine.answered('second', { session_id })).includes('context_cut'))
  const third = await engine.answered('third', { session_id })
  const contents = (asked: number) =>
    engine.model.requests[asked]!.messages.slice(1).map(({ content }) => content.slice(0, 6))
  assert.equal(
    [dataOf(third, 'context_cut'), typesOf(third)[0]],
    [[{ ...nothingCut, dropped_messages: 2 }], 'context_cut'],
  )
  assert.equal(
    [contents(1), contents(2)],
    [
      ['first', 'ssssss', 'second'],
      ['second', 'ssssss', 'third'],
    ],
  )
  // Results of this run displace the past, then are shortened themselves.
  const fourth = await engine.answered('look', { session_id })
  const told = dataOf(fourth, 'context_cut')
  assert.equal(told, [
    { ...nothingCut, dropped_messages: 4 },
    { ...nothingCut, dropped_messages: 6 },
    { ...nothingCut, dropped_messages: 6, shortened_results: 1 },
  ])
  assert.equal(typesOf(fourth), [
    'context_cut',
    'token',
    'tool_call',
    'tool_result',
    'context_cut',
    'token',
    'token',
    'tool_call',
    'tool_result',
    'context_cut',
    'token',
    'token',
    'usage',
    'done',
  ])
  assert.equal(
    resultsIn(engine.model.requests[5]!).map(result => result.length === 1500),
    [false, true],
  )
  const fifth = await engine.answered('brief', { session_id })
  assert.equal(
    [typesOf(fifth).filter(type => type === 'tool_result').length, dataOf(fifth, 'context_cut')],
    [2, [{ ...nothingCut, dropped_messages: 6 }]],
    'what is cut alike in the next call is not told again',
  )
  await engine.stop()
})

test('a file that does not fit is cut, and told of', async () => {
  const engine = await startEngine(() => says('read'), { model: small })
  const content_base64 = Buffer.from('The harbour was dredged. '.repeat(160)).toString('base64')
  const { token } = engine.who
  const { upload_id: upload } = (
    await engine.call('POST', '/uploads', {
      token,
      body: { filename: 'a.txt', mime: 'text/plain', content_base64 },
    })
  ).body as { upload_id: string }
  const list = await engine.answered('read', { attachments: [upload] })
  const [first] = engine.model.requests
  assert.equal(dataOf(list, 'context_cut'), [
    { ...nothingCut, dropped_attachment_characters: 4000 - first!.attachments![0]!.text.length },
  ])
  assert.ok(
    first!.attachments![0]!.text.length > 500 &&
      estimateTokens(first!.messages, first!.attachments) <= 700,
  )
  await engine.stop()
})

test('a request that is longer than the window is refused before anything is held', async () => {
  const engine = await startEngine(() => says('ok'), { model: small })
  const refused = await engine.start('q'.repeat(3300))
  assert.is(refused.status, 400)
  assert.match((refused.body as { detail: string }).detail, /^message: .*about 800 tokens/)
  assert.equal(await engine.balance(), { balance: 1000, held: 0, available: 1000 })
  await engine.stop()
})

test.after(endEngines)
test.run()
