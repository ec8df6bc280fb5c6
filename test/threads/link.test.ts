// What crosses between two threads, and what is given back when a call is over.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { isReply, reply } from '#contracts/contract.ts'
import { fault, hasCode } from '#contracts/faults.ts'
import { remoteProxy, reached, type Reach } from '../../kernel/isolation/remote-proxy.ts'
import { createRpc, type Rpc, type Message } from '../../kernel/isolation/rpc.ts'

type Answer = (target: string, value: unknown) => unknown
/** Two ends; every message is cloned, and those in each direction are kept. */
function pair(answer: Answer): { here: Rpc; there: Rpc; sent: Message[] } {
  const sent: Message[] = []
  const towards = (other: () => Rpc) => (message: Message) => {
    const copy = structuredClone(message)
    sent.push(copy)
    setImmediate(() => other().receive(copy))
  }
  const here: Rpc = createRpc(
    towards(() => there),
    () => undefined,
  )
  const there: Rpc = createRpc(
    towards(() => here),
    answer,
  )
  return { here, there, sent }
}
const turns = async () => {
  for (let i = 0; i < 20; i++) await new Promise(resolve => setImmediate(resolve))
}
const echo: Answer = (_, value) => value

test('plain values, dates, part of a buffer, and a field that looks like a mark', async () => {
  const { here, sent } = pair(echo)
  const bytes = Buffer.alloc(65_536).subarray(10, 13)
  const value = {
    a: [1, null, 'x', { b: undefined }],
    at: new Date(5),
    '\u0000': 'signal',
    nested: { '\u0000': 'own', id: 1 },
  }
  assert.equal(await here.call('echo', value), value)
  assert.equal(await here.call('echo', bytes), new Uint8Array([0, 0, 0]))
  const [, , , crossed] = sent.findLast(([kind]) => kind === 'call') as [
    string,
    number,
    string,
    Uint8Array,
  ]
  assert.is(crossed.buffer.byteLength, 3, 'the rest of its buffer stays where it is')
})

test('a function is refused with a sentence, and the call does not wait', async () => {
  const { here } = pair(echo)
  try {
    await here.call('echo', { run: () => 1 })
    assert.unreachable()
  } catch (error) {
    assert.match((error as Error).message, /function cannot be handed/)
  }
})

test('faults come as the same faults, errors with their message, the rest as it is', async () => {
  const { here } = pair(target => {
    throw target === 'fault'
      ? fault('RATE_LIMITED', { limit: 'x', seconds: 3 }, { retryAfterMs: 2500 })
      : target === 'error'
        ? new RangeError('too far')
        : 'handover'
  })
  const thrownBy = (target: string) =>
    here.call(target).then(
      () => assert.unreachable(),
      (error: unknown) => error,
    )
  const known = (await thrownBy('fault')) as Error & { retryAfterMs: number; values: object }
  assert.ok(hasCode(known, 'RATE_LIMITED'))
  assert.equal([known.retryAfterMs, known.values], [2500, { limit: 'x', seconds: 3 }])
  const rangeError = (await thrownBy('error')) as Error
  assert.equal([rangeError.name, rangeError.message], ['RangeError', 'too far'])
  assert.is(await thrownBy('other'), 'handover')
})

test('an answer with a status stays one', async () => {
  const { here } = pair(() => reply({ a: 1 }, { status: 202, headers: { location: '/x' } }))
  const answer = await here.call('any')
  assert.ok(isReply(answer))
  assert.equal([answer.status, answer.headers, answer.value], [202, { location: '/x' }, { a: 1 }])
})

test('a signal aborts over there with its reason, and nobody listens after the call', async () => {
  let seen: unknown
  const { here, sent } = pair((target, value) =>
    target === 'quick'
      ? 'done'
      : new Promise(resolve => {
          const { signal } = value as { signal: AbortSignal }
          signal.addEventListener('abort', () => resolve((seen = signal.reason)))
        }),
  )
  const slow = new AbortController()
  const waiting = here.call('slow', { signal: slow.signal })
  await turns()
  slow.abort('cancelled')
  assert.is(await waiting, 'cancelled')
  assert.is(seen, 'cancelled')
  const quick = new AbortController()
  await here.call('quick', { signal: quick.signal })
  await turns()
  assert.ok(
    sent.some(([kind]) => kind === 'forgotten'),
    'the other side lets go of it',
  )
  const before = sent.length
  quick.abort()
  await turns()
  assert.is(sent.length, before, 'nothing is said of it any more')
})

test("an iterable runs at its reader's pace, is ended by it, and passes its error on", async () => {
  let made = 0
  let undone = 0
  const { here } = pair(async function (target) {
    return (async function* () {
      try {
        for (;;) {
          if (target === 'broken' && made === 2) throw new Error('in the middle')
          yield made++
        }
      } finally {
        undone++
      }
    })()
  })
  const read: unknown[] = []
  for await (const one of (await here.call('endless')) as AsyncIterable<number>) {
    read.push(one)
    if (one === 2) break
  }
  await turns()
  assert.equal([read, made, undone], [[0, 1, 2], 3, 1])
  made = 0
  try {
    for await (const one of (await here.call('broken')) as AsyncIterable<number>) read.push(one)
    assert.unreachable()
  } catch (error) {
    assert.is((error as Error).message, 'in the middle')
  }
})

test('a signal that came with the call lives as long as the stream that it answered', async () => {
  const { here, sent } = pair((_, value) =>
    (async function* () {
      const { signal } = value as { signal: AbortSignal }
      for (let i = 0; !signal.aborted; i++) {
        yield i
        await new Promise(resolve => setImmediate(resolve))
      }
      yield `ended: ${signal.reason}`
    })(),
  )
  const stop = new AbortController()
  const read: unknown[] = []
  for await (const one of (await here.call('stream', {
    signal: stop.signal,
  })) as AsyncIterable<unknown>) {
    read.push(one)
    if (one === 3) stop.abort('enough')
  }
  assert.is(read.at(-1), 'ended: enough')
  await turns()
  assert.ok(sent.some(([kind]) => kind === 'forgotten'))
})

test('an end fails what waits, ends what was lent, and refuses what comes later', async () => {
  let undone = false
  const { here, there } = pair(() => new Promise(() => undefined))
  const back = there.call(
    'anything',
    (async function* () {
      try {
        yield 1
      } finally {
        undone = true
      }
    })(),
  )
  back.catch(() => undefined)
  const waiting = here.call('never')
  await turns()
  here.end(new Error('gone'))
  there.end(new Error('gone'))
  for (const call of [waiting, here.call('later')])
    assert.is(
      await call.then(
        () => '',
        (error: Error) => error.message,
      ),
      'gone',
    )
  assert.not(undone, 'a generator that nobody began has nothing to undo')
})

test('a chain of calls is carried out over there; what is not offered is refused', async () => {
  const calls: unknown[] = []
  const store = {
    tenant: (caller: { orgId: string }) => ({
      find: async (where: object) => (calls.push([caller, where]), ['found']),
      follow: async function* () {
        yield 1
        yield 2
      },
    }),
  }
  const { here } = pair((_, value) => reached(store, (value as Reach).steps))
  const there = remoteProxy(here, 'port:storage') as typeof store
  assert.equal(await there.tenant({ orgId: 'o' }).find({ a: 1 }), ['found'])
  assert.equal(calls, [[{ orgId: 'o' }, { a: 1 }]])
  const read: number[] = []
  for await (const one of there.tenant({ orgId: 'o' }).follow()) read.push(one)
  assert.equal(read, [1, 2])
  for (const wrong of [
    () => (there as never as { nothing(): Promise<unknown> }).nothing(),
    () =>
      (there as never as { constructor(code: string): Promise<unknown> }).constructor(
        'return process',
      ),
  ]) {
    const error = await wrong().then(
      () => undefined,
      (reason: Error) => reason,
    )
    assert.match(error!.message, /no function|There is no/)
  }
})

test.run()
