import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fault } from '#contracts/faults.ts'
import type { LoggedEvent } from '#ports/eventlog.ts'
import { refuses } from '../../../test/conformance/runner.ts'
import { createFanout } from './fanout.ts'

const event = (seq: number): LoggedEvent => ({ type: 'x', data: seq, seq })
const turn = () => new Promise(resolve => setImmediate(resolve))

/** A log of which the test decides what is written and what is on disk. */
function fakeLog() {
  const events: LoggedEvent[] = []
  const log = {
    events,
    reads: 0,
    onDisk: Promise.resolve() as Promise<void>,
    async read(_: string, after: number, limit: number) {
      log.reads++
      return events.slice(after, after + limit)
    },
    durable: () => log.onDisk,
  }
  return log
}
function following(log: ReturnType<typeof fakeLog>, after = 0) {
  const fanout = createFanout(log)
  const stop = new AbortController()
  const iterator = fanout.follow('a', after, stop.signal)[Symbol.asyncIterator]()
  const append = (seq: number) => {
    log.events.push(event(seq))
    fanout.deliver('a', [event(seq)])
  }
  return {
    fanout,
    stop,
    iterator,
    append,
    seqs: async () => ((await iterator.next()).value as LoggedEvent[]).map(({ seq }) => seq),
  }
}

test('what was read back is shown only when it is on disk', async () => {
  const log = fakeLog()
  const disk = Promise.withResolvers<void>()
  log.onDisk = disk.promise
  log.events.push(event(1))
  const { seqs, stop } = following(log)
  let shown: number[] | undefined
  const reading = seqs().then(found => (shown = found))
  await turn()
  assert.is(shown, undefined)
  disk.resolve()
  await reading
  assert.equal(shown, [1])
  stop.abort()
})

test('what was read back and then lost is read again', async () => {
  const log = fakeLog()
  log.events.push(event(1), event(2))
  log.onDisk = Promise.reject(fault('STORAGE_FULL'))
  log.onDisk.catch(() => {
    log.events.pop()
    log.onDisk = Promise.resolve()
  })
  const { seqs, stop } = following(log)
  assert.equal(await seqs(), [1])
  stop.abort()
})

test('only a reader that falls behind is sent back to the log', async () => {
  const log = fakeLog()
  const { seqs, stop, append } = following(log)
  const first = seqs()
  await turn()
  append(1)
  assert.equal(await first, [1])
  for (let seq = 2; seq <= 200; seq++) append(seq)
  for (let seq = 2; seq <= 200; seq++) assert.equal(await seqs(), [seq])
  assert.is(log.reads, 1)
  for (let seq = 201; seq <= 1000; seq++) append(seq)
  assert.is((await seqs()).length, 256)
  assert.is(log.reads, 2)
  const rest: number[] = []
  while (rest.at(-1) !== 1000) rest.push(...(await seqs()))
  assert.equal(
    rest,
    Array.from({ length: 1000 - 456 }, (_, n) => 457 + n),
  )
  stop.abort()
})

test('in a rewritten stretch with gaps a reader gets what it has not seen, by seq', async () => {
  for (const [after, expected] of [
    [4, [5, 30, 31]],
    [6, [30, 31]],
    [12, [30, 31]],
    [30, [31]],
  ] as const) {
    const log = fakeLog()
    const { fanout, seqs, stop } = following(log, after)
    const next = seqs()
    await turn()
    fanout.deliver('a', [event(5), event(30), event(31)])
    assert.equal(await next, [...expected])
    stop.abort()
  }
})
test('nothing stays behind after an abort, a return, an end or no beginning', async () => {
  const log = fakeLog()
  for (const end of ['abort', 'return', 'end'] as const) {
    const { fanout, stop, iterator } = following(log)
    assert.is(fanout.count(), 0)
    const waiting = iterator.next()
    await turn()
    assert.is(fanout.count(), 1)
    if (end === 'abort') stop.abort()
    if (end === 'return') await iterator.return!()
    if (end === 'end') {
      fanout.end(fault('UNAVAILABLE', { what: 'x', why: 'y' }))
      await refuses('UNAVAILABLE', () => waiting)
    } else assert.equal(await waiting, { done: true, value: undefined })
    assert.is(fanout.count(), 0)
    assert.not(fanout.follows('a'))
    assert.equal(await iterator.next(), { done: true, value: undefined })
  }
})

test('a bounded look sends each of many followers to the log in its turn', async () => {
  const log = fakeLog()
  const fanout = createFanout(log)
  const stop = new AbortController()
  const names = ['a', 'b', 'c', 'd', 'e']
  const read: string[] = []
  log.read = async (stream: string) => (read.push(stream), [])
  for (const name of names) void fanout.follow(name, 0, stop.signal)[Symbol.asyncIterator]().next()
  const looked = async (most?: number) => {
    read.length = 0
    fanout.lag(most)
    await turn()
    return read.join('')
  }
  await turn()
  assert.equal(
    [
      await looked(2),
      await looked(2),
      await looked(2),
      await looked(Number.POSITIVE_INFINITY),
      await looked(),
    ],
    ['ab', 'cd', 'ea', 'bcdea', 'bcdea'],
  )
  stop.abort()
  assert.equal([await looked(), fanout.count()], ['', 0])
})

test.run()
