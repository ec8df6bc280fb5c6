import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createKeyedQueue } from './keyed-queue.ts'

/** Steps that end when they are told to. */
function steps() {
  const told: string[] = []
  const ends = new Map<string, () => void>()
  return {
    told,
    act: (name: string) => () => {
      told.push(`${name} begins`)
      return new Promise<string>(resolve =>
        ends.set(name, () => {
          told.push(`${name} ends`)
          resolve(name)
        }),
      )
    },
    end: async (name: string) => {
      ends.get(name)!()
      for (let i = 0; i < 10; i++) await Promise.resolve()
    },
  }
}
const turns = async () => {
  for (let i = 0; i < 10; i++) await Promise.resolve()
}

test('calls on one id wait for each other, those on others do not', async () => {
  const { one } = createKeyedQueue()
  const { act, end, told } = steps()
  void one('a', act('first'))
  void one('a', act('second'))
  void one('b', act('other'))
  await turns()
  assert.equal(told, ['first begins', 'other begins'])
  await end('first')
  assert.equal(told.slice(2), ['first ends', 'second begins'])
})

test('a call on many waits for all before it, and all after it wait', async () => {
  const { one, many } = createKeyedQueue()
  const { act, end, told } = steps()
  void one('a', act('before'))
  void many(act('many'))
  void one('b', act('after'))
  await turns()
  assert.equal(told, ['before begins'])
  await end('before')
  assert.equal(told.slice(1), ['before ends', 'many begins'])
  await end('many')
  assert.equal(told.slice(3), ['many ends', 'after begins'])
})

test('a look waits for what was asked before, and holds nobody up', async () => {
  const { one, look } = createKeyedQueue()
  const { act, end, told } = steps()
  void one('a', act('write'))
  void look(act('look'))
  void one('b', act('later'))
  await turns()
  assert.equal(told, ['write begins', 'later begins'])
  await end('write')
  assert.equal(told.slice(2), ['write ends', 'look begins'])
})

test('a failure reaches its caller alone, and stops nobody', async () => {
  const { one, many, settled } = createKeyedQueue()
  const failed = one('a', () => Promise.reject(new Error('no'))).then(
    () => '',
    (error: Error) => error.message,
  )
  assert.is(await one('a', async () => 'next'), 'next')
  assert.is(await failed, 'no')
  const broken = many(() => Promise.reject(new Error('never'))).catch(() => 'caught')
  assert.is(await one('b', async () => 'on'), 'on')
  assert.is(await broken, 'caught')
  await settled()
})

test.run()
