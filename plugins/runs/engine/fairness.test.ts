// Which run is driven when, over the API. The model's answers are held back, so the order of its
// calls shows which run got a slot.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fault } from '#kernel'
import type { Collection, Doc } from '#ports/storage.ts'
import {
  dataOf,
  endEngines,
  type Engine,
  lasting,
  startEngine,
  until,
} from '../../../test/support/engine.ts'
import { door, lastWords, says } from '../../../test/support/scripted-model.ts'
import { Runs } from '../collections.ts'

/** Without a sweep, runs start only when others leave. */
const settings = { RUNS_SWEEP_MS: '600000', RUNS_LEASE_MS: '600000' }
type Caps = { active: number; perOrg: number }

/** A server whose model answers a message when its door is opened. */
async function held({ active, perOrg }: Caps, given = {}) {
  const doors = new Map<string, ReturnType<typeof door>>()
  const doorOf = (message: string) => doors.get(message) ?? doors.set(message, door()).get(message)!
  const engine = await startEngine(
    async function* (request) {
      await doorOf(lastWords(request)).passed
      yield* says(`about ${lastWords(request)}`)
    },
    {
      env: {
        ...settings,
        RUNS_ACTIVE_MAX: String(active),
        RUNS_ACTIVE_PER_ORG_MAX: String(perOrg),
      },
      given,
    },
  )
  const calls = () => engine.model.requests.map(lastWords)
  return {
    engine,
    calls,
    open: (...messages: string[]) => messages.forEach(one => doorOf(one).open()),
  }
}
const counts = async (engine: Engine) => [
  await engine.gauge('runs_active{state="active"}'),
  await engine.gauge('runs_active{state="waiting"}'),
  await engine.gauge('runs_organisations'),
]
const inTurn = async (engine: Engine, messages: readonly string[], by = engine.who) => {
  const started = []
  for (const message of messages) started.push(await engine.chat(message, {}, by))
  return started
}

test("a flooding organisation keeps to its share; another's run is driven at once", async () => {
  const { engine, calls, open } = await held({ active: 4, perOrg: 2 })
  const other = await engine.account()
  const flood = ['a0', 'a1', 'a2', 'a3', 'a4', 'a5', 'a6', 'a7', 'a8', 'a9']
  const started = await inTurn(engine, flood)
  await engine.model.asked(2)
  const single = await engine.chat('b0', {}, other)
  await engine.model.asked(3)
  assert.equal(calls(), ['a0', 'a1', 'b0'], 'nobody has come to an end, and it is driven')
  assert.equal(await counts(engine), [3, 8, 2])
  open('b0')
  assert.is((await engine.read(single.run_id, undefined, other)).at(-1)!.data['status'], 'done')
  assert.equal(calls(), ['a0', 'a1', 'b0'], 'its place is not one for the flood')
  open(...flood)
  for (const { run_id: id } of started)
    assert.is((await engine.read(id)).at(-1)!.data['status'], 'done')
  assert.equal(calls(), ['a0', 'a1', 'b0', ...flood.slice(2)], 'first come, first served')
  await until('all have left', async () => (await counts(engine)).every(count => count === 0))
  await engine.stop()
})

test('in a full process a run of a full organisation lets others go first', async () => {
  const { engine, calls, open } = await held({ active: 2, perOrg: 1 })
  const [b, c] = [await engine.account(), await engine.account()]
  await inTurn(engine, ['a0', 'a1', 'a2'])
  await inTurn(engine, ['c0'], c)
  await inTurn(engine, ['b0'], b)
  await engine.model.asked(2)
  assert.equal(
    [calls(), await counts(engine)],
    [
      ['a0', 'c0'],
      [2, 3, 2],
    ],
  )
  open('c0')
  await engine.model.asked(3)
  open('a0')
  await engine.model.asked(4)
  assert.equal(calls(), ['a0', 'c0', 'b0', 'a1'])
  await engine.stop()
})

test('a free place goes to the first in line, even while its document is read', async () => {
  const engines = lasting()
  const reading = door()
  const release = door()
  let slow: string | undefined
  const storage = {
    ...engines.storage,
    async get<D extends Doc>(collection: Collection<D>, id: string) {
      if (collection.name === Runs.name && id === slow) {
        reading.open()
        await release.passed
      }
      return engines.storage.get(collection, id)
    },
  }
  const { engine, calls, open } = await held({ active: 1, perOrg: 1 }, { ...engines, storage })
  const other = await engine.account()
  const [, second] = await inTurn(engine, ['a0', 'a1'])
  slow = second!.run_id
  open('a0')
  await reading.passed
  await engine.chat('b0', {}, other)
  assert.equal([calls(), await counts(engine)], [['a0'], [1, 1, 1]])
  release.open()
  await engine.model.asked(2)
  assert.equal(calls(), ['a0', 'a1'])
  open('a1')
  await engine.model.asked(3)
  assert.is(calls()[2], 'b0')
  await engine.stop()
})

test('whoever cannot be read when it is called does not keep the place', async () => {
  const engines = lasting()
  let broken: string | undefined
  const storage = {
    ...engines.storage,
    async get<D extends Doc>(collection: Collection<D>, id: string) {
      if (collection.name === Runs.name && id === broken)
        throw fault('UNAVAILABLE', { what: 'The storage', why: 'for a test' })
      return engines.storage.get(collection, id)
    },
  }
  const { engine, calls, open } = await held({ active: 1, perOrg: 1 }, { ...engines, storage })
  const [, second] = await inTurn(engine, ['a0', 'a1', 'a2'])
  broken = second!.run_id
  open('a0')
  await engine.model.asked(2)
  assert.equal(
    [calls(), await counts(engine)],
    [
      ['a0', 'a2'],
      [1, 0, 1],
    ],
  )
  await engine.stop()
})

test('whoever leaves calls one, however many wait', async () => {
  const engines = lasting()
  const reads: string[] = []
  const storage = {
    ...engines.storage,
    async get<D extends Doc>(collection: Collection<D>, id: string) {
      if (collection.name === Runs.name) reads.push(id)
      return engines.storage.get(collection, id)
    },
  }
  const { engine, open } = await held({ active: 1, perOrg: 1 }, { ...engines, storage })
  const messages = Array.from({ length: 30 }, (_, i) => `m${i}`)
  await inTurn(engine, messages)
  await engine.model.asked(1)
  reads.length = 0
  open('m0')
  await engine.model.asked(2)
  assert.is(new Set(reads).size, 1, `${reads.length} documents of runs were read`)
  await engine.stop()
})

test('a run cancelled in the line never asks the model, and gives its turn on', async () => {
  const { engine, calls, open } = await held({ active: 1, perOrg: 1 })
  const [, second, third] = await inTurn(engine, ['a0', 'a1', 'a2'])
  assert.is(
    (await engine.call('POST', `/runs/${second!.run_id}/cancel`, { token: engine.who.token }))
      .status,
    200,
  )
  open('a0', 'a2')
  assert.equal(
    dataOf(await engine.read(second!.run_id), 'done').map(({ status }) => status),
    ['cancelled'],
  )
  await engine.read(third!.run_id)
  assert.equal(calls(), ['a0', 'a2'])
  await until('nothing is held', async () => (await engine.balance()).held === 0)
  await engine.stop()
})

test('the next process drives at once what stood in the line of a stopped one', async () => {
  const engines = lasting({ exclusive: false })
  const { engine } = await held({ active: 1, perOrg: 1 }, engines)
  const started = await inTurn(engine, ['a0', 'a1', 'a2'])
  await engine.model.asked(1)
  await engine.stop()
  // Its lease would last ten minutes.
  const next = await startEngine(request => says(`about ${lastWords(request)}`), {
    env: settings,
    given: engines,
    who: engine.who,
  })
  const { body } = await next.call('POST', '/auth/token', {
    body: { api_key: engine.who.api_key },
  })
  const who = { ...engine.who, token: (body as { access_token: string }).access_token }
  for (const { run_id: id } of started)
    assert.is((await next.read(id, undefined, who)).at(-1)!.data['status'], 'done')
  await next.stop()
})

test.after(endEngines)
test.run()
