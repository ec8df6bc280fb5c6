// The silence of a model and the pauses between tries, on a clock that the test moves.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { manualClock } from '#adapters/clock/manual.ts'
import { fault } from '#kernel'
import { dataOf, endEngines, saidIn, until } from '../../../test/support/engine.ts'
import { called, calls, door, resultsIn, says, text } from '../../../test/support/scripted-model.ts'
import type { Tool } from '../api.ts'
import { createCancellation } from '../steps/cancellation.ts'
import { stallMs, timed } from '../../../test/support/runs/manual-time.ts'

const forever = () => new Promise<never>(() => undefined)

test('a silent model is left when its patience ends; a word begins it anew', async () => {
  const doors = [door(), door()]
  const { clock, engine, stop } = await timed(async function* (_, asked) {
    if (asked > 0) return yield* says('two')
    await doors[0]!.passed
    yield [text('one ')]
    doors[1]!.open()
    await forever()
  })
  const { run_id: id } = await engine.chat('count')
  await engine.model.asked(1)
  await clock.advance(stallMs - 1000)
  doors[0]!.open()
  await doors[1]!.passed
  await clock.advance(stallMs - 1000)
  assert.is(engine.model.requests[0]!.signal.aborted, false)
  await clock.advance(3000)
  await engine.model.asked(2)
  assert.is(engine.model.requests[0]!.signal.aborted, true)
  assert.is(engine.model.requests[1]!.signal.aborted, false)
  const list = await engine.read(id)
  assert.equal(
    [saidIn(list), dataOf(list, 'superseded').map(({ keep, reason }) => [keep, reason])],
    ['one two', [[4, 'failed']]],
  )
  await stop()
})

test('a model that deliberates may be silent for three times as long', async () => {
  const { clock, engine, stop } = await timed(
    async function* () {
      yield await forever()
    },
    { env: { RUNS_TRIES_MAX: '1' } },
  )
  const { run_id: id } = await engine.chat('think', { reasoning: true })
  await engine.model.asked(1)
  await clock.advance(3 * stallMs - 1000)
  assert.is(engine.model.requests[0]!.signal.aborted, false)
  await clock.advance(3000)
  const list = await engine.read(id)
  assert.equal(
    dataOf(list, 'error').map(({ code, detail }) => [code, detail]),
    [['MODEL_FAILED', 'The model provider failed: it sent nothing for 30000 ms.']],
  )
  await stop()
})

test('the next try waits a doubling pause, or the one that the provider asks for', async () => {
  const asksFor = [undefined, undefined, 7000]
  const at: number[] = []
  const { clock, engine, stop } = await timed(
    function* (_, asked) {
      at.push(clock.now())
      if (asked >= asksFor.length) return yield* says('answered')
      throw fault(
        'MODEL_FAILED',
        { why: 'busy' },
        asksFor[asked] === undefined ? {} : { retryAfterMs: asksFor[asked]! },
      )
    },
    { env: { RUNS_TRIES_MAX: '9' } },
  )
  const { run_id: id } = await engine.chat('hello')
  await until('four calls', async () => {
    await clock.advance(50)
    return at.length === 4
  })
  assert.is(saidIn(await engine.read(id)), 'answered')
  // Each pause is a random time between half of its bound and the bound.
  for (const [i, least, most] of [
    [0, 125, 250],
    [1, 250, 500],
    [2, 7000, 7000],
  ] as const)
    assert.ok(
      at[i + 1]! - at[i]! >= least && at[i + 1]! - at[i]! <= most,
      `pause ${i}: ${at[i + 1]! - at[i]!}`,
    )
  await stop()
})

test("a pause, or a tool that takes long, is not the model's silence", async () => {
  const through = door()
  const slow: Tool = {
    name: 'slow',
    description: 'Takes long.',
    parameters: { type: 'object' },
    effect: 'none',
    timeoutMs: 1_000_000,
    run: async () => {
      await through.passed
      return { content: 'at last' }
    },
  }
  const { clock, engine, stop } = await timed(
    function* (request, asked) {
      if (asked === 0) throw fault('MODEL_FAILED', { why: 'busy' }, { retryAfterMs: 4 * stallMs })
      yield* resultsIn(request).length > 0
        ? says(resultsIn(request)[0]!)
        : calls(called('c1', 'slow'))
    },
    { tools: [slow], env: { RUNS_TRIES_MAX: '2' } },
  )
  const { run_id: id } = await engine.chat('hello')
  await engine.model.asked(1)
  await clock.advance(4 * stallMs)
  await engine.read(id, ({ event }) => event === 'tool_call')
  await clock.advance(4 * stallMs)
  through.open()
  const list = await engine.read(id)
  assert.equal(
    [saidIn(list), dataOf(list, 'tool_result')[0]!['status'], engine.model.requests.length],
    ['at last', 'ok', 3],
  )
  await stop()
})

test('a driver that must stop stays stopped; what ended a try is forgotten with it', () => {
  const clock = manualClock(0)
  const cancellation = createCancellation(clock)
  const silent = new Error('silent')
  cancellation.expireIdle(0, () => silent)
  assert.is(cancellation.signal().aborted, false, 'nobody listens to a model')
  cancellation.touch()
  void clock.advance(5)
  cancellation.expireIdle(5, () => silent)
  assert.is(cancellation.signal().aborted, false)
  const first = cancellation.signal()
  cancellation.stop('cancelled')
  cancellation.stop('lost')
  assert.equal(
    [cancellation.stopped(), first.reason, cancellation.renew().aborted],
    ['cancelled', 'cancelled', true],
    'the first reason counts',
  )
})

test.after(endEngines)
test.run()
