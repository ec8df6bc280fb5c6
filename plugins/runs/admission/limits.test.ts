// The limits of one run: rounds of tools, model calls, credits.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import type { Ledger } from '#ports/billing.ts'
import type { NewEvent } from '#ports/eventlog.ts'
import { dataOf, endEngines, saidIn, startEngine, typesOf } from '../../../test/support/engine.ts'
import {
  called,
  ends,
  offered,
  resultsIn,
  says,
  text,
  type Play,
} from '../../../test/support/scripted-model.ts'
import type { Tool } from '../api.ts'
import {
  event,
  held,
  holding,
  stepBegins,
  modelCallAccepted,
  leaseTaken,
  toolWhole,
} from '../journal/records.ts'

let bodies = 0
const look: Tool = {
  name: 'look',
  description: 'Looks.',
  parameters: { type: 'object' },
  effect: 'none',
  run: () => ({ content: `look ${++bodies}` }),
}
const insists: Play = (_, asked) => [
  [text(`${asked} `), called(`c${asked}`, 'look'), ...ends('tool_calls')],
]

test('the last round has no tools; a model that calls all the same is not heard', async () => {
  for (const [env, times] of [
    [{ RUNS_ROUNDS_MAX: '3' }, 3],
    [{ RUNS_STEPS_MAX: '2' }, 2],
    [{ RUNS_ROUNDS_MAX: '1' }, 1],
  ] as const) {
    bodies = 0
    const engine = await startEngine(insists, { tools: [look], env })
    const list = await engine.answered('look')
    assert.equal(
      engine.model.requests.map(request => offered(request).includes('look')),
      [...Array<boolean>(times - 1).fill(true), false],
    )
    assert.equal(
      [bodies, dataOf(list, 'tool_call').length, saidIn(list)],
      [times - 1, times - 1, ['0 ', '1 ', '2 '].slice(0, times).join('\n\n')],
    )
    assert.equal(
      [dataOf(list, 'usage')[0]!['model_calls'], list.at(-1)!.data['status']],
      [times, 'done'],
    )
    await engine.stop()
  }
})

test('a model without tools is offered none', async () => {
  const engine = await startEngine(() => says('ok'), {
    tools: [look],
    model: { supports: { tools: false } },
  })
  await engine.answered('look')
  assert.is(engine.model.requests[0]!.tools, undefined)
  await engine.stop()
})

// One credit a token, at most 100 an answer: each further answer needs more than the hold.
const dear = { price: { inputPer1k: 0, outputPer1k: 1000, minimum: 1 }, outputTokensMax: 100 }
const spends: Play = (request, asked) =>
  resultsIn(request).length < 2
    ? [
        [
          text(`${asked} `),
          called(`c${asked}`, 'look'),
          ...ends('tool_calls', { inputTokens: 1, outputTokens: 80 }),
        ],
      ]
    : says('That is it.', { inputTokens: 1, outputTokens: 80 })
const entriesOf = async (engine: Awaited<ReturnType<typeof startEngine>>) =>
  (await engine.engine<Ledger>('billing').entries(engine.who.org_id)).filter(
    ({ kind }) => kind !== 'credit',
  )

test('a run holds more before each answer, pays what it used, and frees the rest', async () => {
  const engine = await startEngine(spends, { tools: [look], model: dear, credits: 300 })
  const { run_id: id } = await engine.chat('look')
  const list = await engine.read(id)
  assert.equal([list.at(-1)!.data['status'], dataOf(list, 'usage')[0]!['credits']], ['done', 240])
  await engine.closed(id)
  assert.equal(
    [await engine.balance(), (await engine.run(id)).credits],
    [{ balance: 60, held: 0, available: 60 }, 240],
  )
  assert.equal(
    (await entriesOf(engine)).map(({ kind, key, amount, held: change }) => [
      kind,
      key.replace(id, 'run'),
      amount,
      change,
    ]),
    [
      ['hold', 'hold:run', 0, 100],
      ['hold', 'hold:run:step1', 0, 80],
      ['hold', 'hold:run:step2', 0, 80],
      ['capture', 'end:run', -100, -100],
      ['capture', 'end:run:step1', -80, -80],
      ['capture', 'end:run:step2', -60, -80],
    ],
  )
  await engine.stop()
})

test('a run without credits for its next answer ends, and is charged what was done', async () => {
  const engine = await startEngine(spends, { tools: [look], model: dear, credits: 150 })
  const { run_id: id } = await engine.chat('look')
  const list = await engine.read(id)
  assert.equal(typesOf(list), ['token', 'tool_call', 'tool_result', 'usage', 'error'])
  assert.equal(list.at(-1)!.data, {
    code: 'CREDITS_EXHAUSTED',
    detail:
      'The credits ran out in the middle of the run: 80 more were needed, 50 were left. ' +
      'What was done until then is charged.',
  })
  assert.equal(
    dataOf(list, 'usage').map(({ credits, output_tokens: output, model_calls: times }) => [
      credits,
      output,
      times,
    ]),
    [[80, 80, 1]],
  )
  await engine.closed(id)
  assert.equal(
    [engine.model.requests.length, await engine.balance(), (await engine.run(id)).status],
    [1, { balance: 70, held: 0, available: 70 }, 'failed'],
  )
  const refused = await engine.start('again')
  assert.equal(
    [refused.status, (refused.body as { code: string }).code],
    [402, 'INSUFFICIENT_CREDITS'],
  )
  await engine.stop()
})

/**
 * The first answer and its tool's result are journalled. The process died around the second hold.
 */
const before: readonly NewEvent[] = [
  leaseTaken(1),
  event('token', { text: '0 ', step: 0, attempt: 1 }),
  toolWhole({ step: 0, attempt: 1, call: { id: 'c0', name: 'look', arguments: {} } }),
  modelCallAccepted({
    step: 0,
    attempt: 1,
    finish: 'tool_calls',
    input_tokens: 1,
    output_tokens: 80,
  }),
  event('tool_call', { step: 0, call_id: 'c0', name: 'look', arguments: {} }),
  event('tool_result', {
    step: 0,
    call_id: 'c0',
    name: 'look',
    status: 'ok',
    content: 'x',
    truncated: false,
    artifact_id: null,
  }),
  stepBegins({ step: 1, purpose: 'answer' }),
]
const part = { part: 'step1', amount: 80 }
test("a crash around a further hold makes it once, with or without the ledger's word", async () => {
  for (const [records, inLedger] of [
    [[...before], false],
    [[...before, holding(part)], false],
    [[...before, holding(part)], true],
    [[...before, holding(part), held(part)], true],
  ] as const) {
    const engine = await startEngine(() => says('done', { inputTokens: 1, outputTokens: 80 }), {
      tools: [look],
      model: dear,
      credits: 300,
    })
    const id = crypto.randomUUID()
    const ledger = engine.engine<Ledger>('billing')
    if (inLedger) await ledger.hold(engine.who.org_id, { of: `${id}:step1`, amount: 80 })
    await engine.left(records, { id, hold: 100 })
    assert.is((await engine.read(id)).at(-1)!.data['status'], 'done')
    await engine.closed(id)
    assert.equal(await engine.balance(), { balance: 140, held: 0, available: 140 })
    assert.equal(
      (await entriesOf(engine))
        .filter(({ key }) => key.endsWith(':step1'))
        .map(({ kind, amount }) => [kind, amount]),
      [
        ['hold', 0],
        ['capture', -60],
      ],
    )
    await engine.stop()
  }
})

test('a hold that was wanted is barred at the end: no late driver can make it', async () => {
  const engine = await startEngine(() => says('never asked'), {
    tools: [look],
    model: dear,
    credits: 150,
  })
  const run = await engine.left([...before, holding(part)], { hold: 100 })
  const ledger = engine.engine<Ledger>('billing')
  assert.is((await engine.read(run.id)).at(-1)!.data['code'], 'CREDITS_EXHAUSTED')
  await engine.closed(run.id)
  await ledger.credit(engine.who.org_id, { key: 'gift', amount: 1000, reason: 'test' })
  const late = await ledger
    .hold(engine.who.org_id, { of: `${run.id}:step1`, amount: 80 })
    .catch((error: unknown) => error)
  assert.ok(hasCode(late, 'LEDGER_MISMATCH'), String(late))
  assert.equal(
    [engine.model.requests, await engine.balance()],
    [[], { balance: 1070, held: 0, available: 1070 }],
  )
  await engine.stop()
})

test('a run is never charged more than was set aside for it', async () => {
  const engine = await startEngine(() => says('much', { inputTokens: 1, outputTokens: 5000 }), {
    model: dear,
    credits: 150,
  })
  const list = await engine.answered('talk')
  assert.equal([dataOf(list, 'usage')[0]!['credits'], (await engine.balance()).balance], [100, 50])
  await engine.stop()
})

test('a wholly withheld answer ends the run as refused; a beginning is an answer', async () => {
  const engine = await startEngine((_, asked) =>
    asked === 0
      ? [ends('filtered', { inputTokens: 5, outputTokens: 0 })]
      : [[text('half'), ...ends('filtered')]],
  )
  const list = await engine.answered('say it')
  assert.equal([typesOf(list), list.at(-1)!.data['code']], [['usage', 'error'], 'MODEL_REFUSED'])
  assert.is((await engine.answered('say it')).at(-1)!.data['status'], 'done')
  await engine.stop()
})

test.after(endEngines)
test.run()
