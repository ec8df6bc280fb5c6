// A hand-over while a tool acts, on a clock that the test moves: what the next driver knows.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { manualClock } from '#adapters/clock/manual.ts'
import { dataOf, endEngines, lasting, saidIn, until } from '../../../test/support/engine.ts'
import {
  called,
  calls,
  door,
  lastWords,
  resultsIn,
  says,
  type Play,
} from '../../../test/support/scripted-model.ts'
import type { Tool } from '../api.ts'
import { Runs } from '../collections.ts'
import { createCancellation } from '../steps/cancellation.ts'
import { timed } from '../../../test/support/runs/manual-time.ts'

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
