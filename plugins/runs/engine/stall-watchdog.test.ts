// Timeouts, on a clock that the test moves: a silent model, pauses between tries, a slow tool, a
// hand-over.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { manualClock } from '#adapters/clock/manual.ts'
import { fault } from '#kernel'
import {
  dataOf,
  endEngines,
  lasting,
  saidIn,
  startEngine,
  until,
} from '../../../test/support/engine.ts'
import {
  called,
  calls,
  door,
  lastWords,
  resultsIn,
  says,
  text,
  type Play,
} from '../../../test/support/scripted-model.ts'
import type { Tool } from '../api.ts'
import { Runs } from '../collections.ts'
import { createCancellation } from '../steps/cancellation.ts'

const stallMs = 10_000
/** Beats come every second. Nothing else in the engine needs the clock. */
const env = { RUNS_STALL_MS: String(stallMs), RUNS_LEASE_MS: '3000', RUNS_SWEEP_MS: '1000' }
const timed = async (play: Play, more: Parameters<typeof startEngine>[1] = {}) => {
  const clock = manualClock(Date.now())
  const engine = await startEngine(play, {
    ...more,
    env: { ...env, ...more.env },
    given: { clock, ...more.given },
  })
  /**
   * Stops the server and moves the clock meanwhile: a stop polls for idle connections, and waits
   * for tools' bodies.
   */
  const stop = async () => {
    let over = false
    const stopped = engine.stop().finally(() => {
      over = true
    })
    await until('the server has stopped', async () => {
      await clock.advance(50)
      return over
    })
    return stopped
  }
  return { clock, engine, stop }
}
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

/** A run whose tool `act` has effects. */
async function acting(run: Tool['run'], effect?: Tool['effect']) {
  const engines = lasting()
  const play: Play = request =>
    resultsIn(request).length > 0
      ? says(`it said: ${resultsIn(request)[0]}`)
      : lastWords(request) === 'nothing'
        ? says('')
        : calls(called('c1', 'act'))
  const tool: Tool = {
    name: 'act',
    description: 'Acts.',
    parameters: { type: 'object' },
    timeoutMs: 1_000_000,
    run,
    ...(effect ? { effect } : {}),
  }
  const { clock, engine, stop } = await timed(play, {
    tools: [tool],
    env: { RUNS_ACTIVE_MAX: '1' },
    given: { storage: engines.storage, eventlog: engines.eventlog },
  })
  const { run_id: id } = await engine.chat('do it')
  // This run gets no slot. The hand-over frees its lease, and so shows that it has begun.
  const { run_id: idle } = await engine.chat('nothing')
  const handingOver = () =>
    until('the hand-over has begun', async () => {
      await clock.advance(10)
      return (await engines.storage.get(Runs, idle))!.owner === undefined
    })
  const takeOver = async () => {
    const {
      clock: later,
      engine: next,
      stop: stopNext,
    } = await timed(play, {
      tools: [tool],
      who: engine.who,
      given: { storage: engines.storage, eventlog: engines.eventlog },
    })
    await until('the end', async () => {
      await later.advance(1000)
      return (await next.run(id)).phase === 'closed'
    })
    const list = (await next.journal(await next.run(id))).map(({ type, data }) => ({
      event: type,
      data: data as Record<string, unknown>,
      id: 0,
    }))
    await stopNext()
    return list
  }
  return { engine, stop, handingOver, takeOver }
}

test('a hand-over lets a body that acts end; the next driver knows its result', async () => {
  const begun = door()
  const through = door()
  let bodies = 0
  let aborted: boolean | undefined
  const { engine, handingOver, takeOver } = await acting(async (_, { signal }) => {
    bodies++
    begun.open()
    await through.passed
    aborted = signal.aborted
    return { content: 'done' }
  })
  await begun.passed
  const stopped = engine.stop()
  await handingOver()
  through.open()
  await stopped
  assert.equal([bodies, aborted], [1, false])
  const list = await takeOver()
  assert.equal(
    [
      bodies,
      dataOf(list, 'tool_result').map(({ status, content }) => [status, content]),
      saidIn(list),
    ],
    [1, [['ok', 'done']], 'it said: done'],
  )
})

for (const [effect, status, times] of [
  ['once', 'unknown', 1],
  ['keyed', 'ok', 2],
  ['none', 'ok', 2],
] as const) {
  test(`after a hand-over a late body of effect ${effect} runs ${times} times`, async () => {
    const begun = door()
    const keys: string[] = []
    const { stop, takeOver } = await acting(async (_, { key, signal }) => {
      begun.open()
      if (keys.push(key) > 1) return { content: 'done' }
      return new Promise<never>((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason)),
      )
    }, effect)
    await begun.passed
    await stop()
    const list = await takeOver()
    assert.equal(
      [keys.length, new Set(keys).size, dataOf(list, 'tool_result').map(one => one['status'])],
      [times, 1, [status]],
    )
  })
}

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

test('while something acts, a hand-over waits and everything else does not', async () => {
  for (const [reason, waits] of [
    ['handover', true],
    ['lost', false],
    ['cancelled', false],
  ] as const) {
    const cancellation = createCancellation(manualClock(0))
    const through = door()
    const act = cancellation.whileActing(() => through.passed)
    cancellation.stop(reason)
    assert.is(cancellation.signal().aborted, !waits, reason)
    through.open()
    await act
    assert.is(cancellation.stopped(), reason)
    cancellation.abandon()
    assert.is(cancellation.signal().reason, reason)
  }
})

test.after(endEngines)
test.run()
