import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { manualClock } from '../../../adapters/clock/manual.ts'
import { createSemaphore } from './semaphore.ts'

const never = new AbortController().signal
/** Work that ends when it is told to. */
function stage(
  bounds: { atOnce?: number; perUser?: number; perAddress?: number; waitingMax?: number } = {},
) {
  const clock = manualClock()
  const line = createSemaphore(
    { atOnce: 2, perUser: 2, perAddress: 9, waitingMax: 2, waitMsMax: 1000, ...bounds },
    clock,
  )
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const told: string[] = []
  return {
    clock,
    begun,
    told,
    enter: (name: string, user = name, signal = never, address = '10.0.0.1') =>
      void line
        .run(
          { user, address },
          signal,
          () =>
            new Promise<void>(resolve => {
              begun.push(name)
              ends.set(name, resolve)
            }),
        )
        .then(
          () => told.push(`${name} ended`),
          (error: Error) => told.push(`${name} ${error.message}`),
        ),
    async end(name: string) {
      ends.get(name)!()
      await clock.settle()
    },
  }
}

test('so many at a time, the others in turn, and no more than the line holds', async () => {
  const { enter, end, begun, told, clock } = stage()
  for (const name of ['a', 'b', 'c', 'd', 'e']) enter(name)
  await clock.settle()
  assert.equal(begun, ['a', 'b'])
  assert.equal(told, ['e The server is at its capacity. Wait 1 s.'])
  await end('b')
  assert.equal(begun, ['a', 'b', 'c'])
  enter('x')
  await clock.settle()
  assert.equal(begun, ['a', 'b', 'c'], 'the place that was handed over is taken')
  await end('a')
  await end('c')
  assert.equal(begun, ['a', 'b', 'c', 'd', 'x'])
  await end('d')
  await end('x')
  enter('f')
  enter('g')
  await clock.settle()
  assert.equal(begun.slice(5), ['f', 'g'], 'every place was given back')
})

test('a user with a full share waits, and holds up nobody else', async () => {
  const { enter, end, begun, clock } = stage({ atOnce: 3, perUser: 1, waitingMax: 5 })
  enter('a1', 'a')
  enter('a2', 'a')
  enter('b1', 'b')
  enter('b2', 'b')
  await clock.settle()
  assert.equal(begun, ['a1', 'b1'])
  await end('b1')
  assert.equal(begun, ['a1', 'b1', 'b2'])
  await end('a1')
  assert.equal(begun.at(-1), 'a2')
})

test('an address with a full share waits, whatever its users; a /64 is one address', async () => {
  const { enter, end, begun, clock } = stage({ atOnce: 4, perAddress: 2, waitingMax: 5 })
  enter('a', 'a', never, '2001:db8::1')
  enter('b', 'b', never, '2001:db8::2')
  enter('c', 'c', never, '2001:db8::3')
  enter('d', 'd', never, '2001:db8:0:1::1')
  await clock.settle()
  assert.equal(begun, ['a', 'b', 'd'])
  await end('a')
  assert.equal(begun, ['a', 'b', 'd', 'c'])
})

test('whoever waits too long, or goes away, gives its place up', async () => {
  const { enter, end, begun, told, clock } = stage({ atOnce: 1 })
  const gone = new AbortController()
  enter('a')
  enter('b')
  enter('c', 'c', gone.signal)
  gone.abort(new Error('went away'))
  await clock.settle()
  assert.equal(told, ['c went away'])
  await clock.advance(1000)
  assert.equal(told[1], 'b The server is at its capacity. Wait 1 s.')
  await end('a')
  enter('d')
  await clock.settle()
  assert.equal(begun, ['a', 'd'])
  assert.is(clock.sleeping(), 0, 'nobody waits any more')
})

test('work that fails gives its place back', async () => {
  const clock = manualClock()
  const line = createSemaphore(
    { atOnce: 1, perUser: 1, perAddress: 1, waitingMax: 0, waitMsMax: 1000 },
    clock,
  )
  const comer = { user: 'a', address: '192.0.2.1' }
  await line
    .run(comer, never, async () => {
      throw new Error('failed')
    })
    .then(
      () => assert.unreachable(),
      (error: Error) => assert.is(error.message, 'failed'),
    )
  assert.is(await line.run(comer, never, async () => 'again'), 'again')
})

test.run()
