import { setTimeout } from 'node:timers/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Message, ModelDelta } from '#ports/models.ts'
import { deltasOf, modelsKit, textOf } from '../../test/conformance/models.ts'
import { opening } from '../../test/conformance/opening.ts'
import { manualClock } from '../clock/manual.ts'
import { systemClock } from '../clock/system.ts'
import adapter, { scripted } from './scripted.ts'

const clock = systemClock()
const failing = async (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'passed',
    error => error.code ?? error.message,
  )

modelsKit(test, 'scripted with resume', {
  open: async () => scripted({ settings: { resume: '1' }, clock }),
  long: 'Go on.',
  tool: 'Add, please. [[tool=add {"a":1}]]',
})
modelsKit(test, 'scripted', {
  open: async () => scripted({ clock }),
  long: 'Go on.',
  tool: 'Add, please. [[tool=add {"a":1}]]',
})

test('it writes numbered tokens: the first at once, then all the others together', async () => {
  const batches = await Array.fromAsync(
    scripted({ clock }).stream({
      model: 'scripted',
      messages: [{ role: 'user', content: '12345' }],
      signal: new AbortController().signal,
    }),
  )
  assert.equal(
    batches.map(batch => batch.length),
    [1, 19, 2],
  )
  assert.equal(batches[0], [{ type: 'text', text: 'token00 ' }])
  assert.equal(batches.at(-1), [
    { type: 'usage', usage: { inputTokens: 2, outputTokens: 20 } },
    { type: 'finish', reason: 'stop' },
  ])
})
test("a message's directives override the URL's for that call alone", async () => {
  const model = scripted({ settings: { tokens: '4' }, clock })
  assert.is(textOf(await deltasOf(model, 'x')), 'token00 token01 token02 token03 ')
  assert.is(textOf(await deltasOf(model, 'x [[tokens=1]] [[unknown=1]]')), 'token00 ')
  assert.is(textOf(await deltasOf(model, '[[text=one two]]')), 'one two')
  assert.is(
    (await deltasOf(model, '[[reasoning=2]]')).filter(({ type }) => type === 'reasoning').length,
    2,
  )
  assert.is(
    (await deltasOf(model, 'x', { reasoning: true })).filter(({ type }) => type === 'reasoning')
      .length,
    3,
  )
  assert.is(await failing(deltasOf(model, '[[tokens=many]]')), 'INVALID_FIELD')
})
test("a tool's JSON may hold brackets", async () => {
  const [call] = await deltasOf(scripted({ clock }), 'a [[tool=deep {"a":[[1]],"b":"]]"}]] b')
  assert.equal(call?.type === 'tool_call' && call.call.arguments, { a: [[1]], b: ']]' })
})
test('fail_after fails after that many tokens; a call that begins there is past it', async () => {
  const model = scripted({ clock })
  const deltas: string[] = []
  const reading = (async () => {
    for await (const batch of model.stream({
      model: 'scripted',
      messages: [{ role: 'user', content: '[[fail_after=3]]' }],
      signal: new AbortController().signal,
    }))
      deltas.push(textOf(batch))
  })()
  assert.is(await failing(reading), 'MODEL_FAILED')
  const prefill = deltas.join('')
  assert.is(prefill, 'token00 token01 token02 ')
  const rest = await deltasOf(model, '[[fail_after=3]]', { prefill })
  assert.is(prefill + textOf(rest), textOf(await deltasOf(model, 'x')))
  assert.equal(rest.at(-2), { type: 'usage', usage: { inputTokens: 4, outputTokens: 17 } })
  assert.is(await failing(deltasOf(model, '[[fail_after=0]]')), 'MODEL_FAILED')
})
test('fail_calls counts the failures of one message; fail_rate fails its share', async () => {
  const model = scripted({ clock: manualClock() })
  const ask = () => failing(deltasOf(model, '[[fail_after=2]] [[fail_calls=2]]'))
  assert.equal([await ask(), await ask(), await ask()], ['MODEL_FAILED', 'MODEL_FAILED', 'passed'])
  const ends = await Promise.all(
    Array.from({ length: 200 }, () => failing(deltasOf(model, '[[fail_rate=0.5]]'))),
  )
  const failed = ends.filter(end => end === 'MODEL_FAILED').length
  assert.ok(failed > 60 && failed < 140, String(failed))
})
test('stall_after says no more until it is aborted, or until the provider closes', async () => {
  const model = scripted({ clock })
  const controller = new AbortController()
  const asked = deltasOf(model, '[[stall_after=2]]', { signal: controller.signal })
  const ended = failing(asked)
  assert.is(await Promise.race([ended, setTimeout(30, 'silent')]), 'silent')
  controller.abort(new Error('cancelled'))
  assert.is(await ended, 'cancelled')
  const closed = failing(deltasOf(model, '[[stall_after=0]]'))
  await setTimeout(5)
  await model.close()
  assert.is(await closed, 'UNAVAILABLE')
})
/** The conversation after `results` answered calls. */
const after = (content: string, results: number): { messages: Message[] } => ({
  messages: [
    { role: 'user', content },
    ...Array.from(
      { length: results },
      (_, n): Message => ({ role: 'tool', callId: `c${n}`, content: 'ok' }),
    ),
  ],
})
const callsOf = (deltas: readonly ModelDelta[]) =>
  deltas.flatMap(delta =>
    delta.type === 'tool_call' ? [[delta.call.name, delta.call.arguments]] : [],
  )

test('tools are called one after another, parallel_tools at once, after their text', async () => {
  const model = scripted({ clock })
  const told =
    'x [[tools=[["add",{"a":[[1]]}],["look_up"]]]] [[tool_text=One moment.]] [[text=Done.]]'
  const answers = await Promise.all([0, 1, 2].map(n => deltasOf(model, '', after(told, n))))
  assert.equal(answers.map(callsOf), [[['add', { a: [[1]] }]], [['look_up', {}]], []])
  assert.equal(answers.map(textOf), ['One moment.', 'One moment.', 'Done.'])
  assert.equal(
    answers.map(deltas => deltas.at(-1)),
    [
      { type: 'finish', reason: 'tool_calls' },
      { type: 'finish', reason: 'tool_calls' },
      { type: 'finish', reason: 'stop' },
    ],
  )
  const together = '[[parallel_tools=[["add",{"a":1}],["add",{"a":2}]]]] [[text=Done.]]'
  assert.equal(callsOf(await deltasOf(model, together)), [
    ['add', { a: 1 }],
    ['add', { a: 2 }],
  ])
  assert.is(textOf(await deltasOf(model, '', after(together, 2))), 'Done.')
  for (const wrong of [
    '[[tools=[["add"]]',
    '[[tools={"a":1}]]',
    '[[parallel_tools=[1]]]',
    '[[tool=add {]]',
  ])
    assert.is(await failing(deltasOf(model, wrong)), 'INVALID_FIELD', wrong)
})
test('open_tool_fail opens a call and fails before its end, fail_calls times', async () => {
  const model = scripted({ clock })
  const told = '[[tool=add]] [[tool_text=One moment.]] [[open_tool_fail=1]] [[fail_calls=1]]'
  const deltas: ModelDelta[] = []
  const reading = (async () => {
    for await (const batch of model.stream({
      model: 'scripted',
      messages: [{ role: 'user', content: told }],
      signal: new AbortController().signal,
    }))
      deltas.push(...batch)
  })()
  assert.is(await failing(reading), 'MODEL_FAILED')
  assert.is(textOf(deltas), 'One moment.')
  assert.equal(
    deltas.slice(-1).map(delta => delta.type === 'tool_open' && delta.name),
    ['add'],
  )
  assert.equal(callsOf(await deltasOf(model, told)), [['add', {}]])
  assert.is(await failing(deltasOf(model, '[[text=Well]] [[open_tool_fail=1]]')), 'MODEL_FAILED')
})
test('a call that only calls tools uses up none of the failures', async () => {
  const model = scripted({ clock })
  const told = '[[tool=add]] [[fail_after=1]] [[fail_calls=1]]'
  assert.is(await failing(deltasOf(model, told)), 'passed')
  assert.is(await failing(deltasOf(model, '', after(told, 1))), 'MODEL_FAILED')
  assert.is(await failing(deltasOf(model, '', after(told, 1))), 'passed')
})
test('with resume=1 an answer goes on from what was received, in any process', async () => {
  const open = () => scripted({ settings: { resume: '1' }, clock })
  const told = '[[fail_after=3]] [[reasoning=2]]'
  const received: ModelDelta[] = []
  const reading = (async () => {
    for await (const batch of open().stream({
      model: 'scripted',
      messages: [{ role: 'user', content: told }],
      signal: new AbortController().signal,
    }))
      received.push(...batch)
  })()
  assert.is(await failing(reading), 'MODEL_FAILED')
  const last = received.at(-1)!
  assert.ok(last.type === 'checkpoint' && last.checkpoint.at === 3)
  const rest = await deltasOf(open(), told, { resume: last.checkpoint })
  assert.is(textOf(received) + textOf(rest), textOf(await deltasOf(open(), 'x')))
  assert.not.ok(rest.some(({ type }) => type === 'reasoning'))
  assert.equal(rest.at(-2), { type: 'usage', usage: { inputTokens: 8, outputTokens: 20 } })
  assert.is(received.filter(({ type }) => type === 'checkpoint').length, 3)
  assert.not.ok(
    (await deltasOf(scripted({ clock }), '[[resume=1]]')).some(({ type }) => type === 'checkpoint'),
    'a message cannot change what the catalogue says',
  )
})
test('interval_ms sends one token after each pause', async () => {
  const manual = manualClock()
  const model = scripted({ settings: { tokens: '3', interval_ms: '20' }, clock: manual })
  const seen: string[] = []
  const reading = (async () => {
    for await (const batch of model.stream({
      model: 'scripted',
      messages: [{ role: 'user', content: 'x' }],
      signal: new AbortController().signal,
    }))
      seen.push(textOf(batch))
  })()
  await manual.advance(39)
  assert.equal(seen, ['token00 '])
  await manual.advance(21)
  await reading
  assert.equal(seen, ['token00 ', 'token01 ', 'token02 ', ''])
})
test("the URL's options are read, and a wrong one is refused when it opens", async () => {
  const model = await adapter.open(opening('scripted:?tokens=2&prefill=0', { clock }))
  assert.is(textOf(await deltasOf(model, 'x')), 'token00 token01 ')
  assert.is((await model.catalogue())[0]!.supports.prefill, false)
  assert.is(await failing(adapter.open(opening('scripted:?tokens=-1', { clock }))), 'INVALID_FIELD')
})
test('a call of twenty tokens costs a few tens of microseconds at most', async () => {
  const model = scripted({ clock })
  const request = {
    model: 'scripted',
    messages: [{ role: 'user' as const, content: 'x' }],
    signal: new AbortController().signal,
  }
  const calls = 5000
  let best = Infinity
  for (let round = 0; round < 3; round++) {
    const since = performance.now()
    for (let n = 0; n < calls; n++)
      for await (const batch of model.stream(request)) if (batch.length === 0) assert.unreachable()
    best = Math.min(best, (performance.now() - since) / calls)
  }
  assert.ok(best < 0.05, `${best} ms`)
})
test.run()
