// What every event log promises.
import assert from 'node:assert/strict'
import type { EventlogEngine, LoggedEvent } from '#ports/eventlog.ts'
import { hasCode } from '#contracts/faults.ts'
import { event, events, followTo, readUpTo, seqs, type On } from './eventlog/common.ts'
import { restores } from './eventlog/restore.ts'
import { rewrites } from './eventlog/rewrite.ts'
import { refuses, type Test } from './runner.ts'

type Place = {
  open(): Promise<{ readonly log: EventlogEngine; close(): Promise<void> }>
  clean?(): Promise<void>
}
type Kit = {
  place: () => Promise<Place>
  /** What was durable is there after closing and opening again. */
  survives: boolean
}
const range = (from: number, to: number) =>
  Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => from + n)

export function eventlogKit(test: Test, name: string, { place, survives }: Kit): void {
  const on: On = (title, run) =>
    test(`${name}: ${title}`, async () => {
      const at = await place()
      const opened = await at.open()
      try {
        await run(opened.log)
      } finally {
        await opened.close()
        await at.clean?.()
      }
    })
  appends(on)
  trims(on)
  rewrites(on)
  restores(on)
  follows(on)
  slowReaders(on)
  states(test, name, { place, survives })
}

function appends(on: On): void {
  on('seqs begin at 1 and have no gaps; each stream counts for itself', async log => {
    assert.equal(await log.append('a', events(3)), 3)
    assert.equal(await log.append('b', events(1)), 1)
    assert.equal(
      await log.append('a', [
        { type: 'x', data: null, hidden: true },
        { type: 'y', data: ['é🦊\u0000', { deep: [] }] },
      ]),
      5,
    )
    const all = await log.read('a')
    assert.deepEqual(seqs(all), [1, 2, 3, 4, 5])
    assert.deepEqual(all.slice(3), [
      { type: 'x', data: null, hidden: true, seq: 4 },
      { type: 'y', data: ['é🦊\u0000', { deep: [] }], seq: 5 },
    ])
    assert.deepEqual(await log.bounds('a'), { first: 1, last: 5 })
    assert.deepEqual(await log.bounds('unknown'), { first: 1, last: 0 })
    assert.deepEqual(await log.read('unknown'), [])
  })
  on('a read begins after any seq and keeps its limit, whatever the appends were', async log => {
    for (const count of [1, 7, 2, 300, 5]) await log.append('a', events(count))
    for (const after of [0, 1, 4, 8, 9, 10, 200, 309, 310, 315, 400]) {
      for (const limit of [1, 3, 1000])
        assert.deepEqual(
          seqs(await log.read('a', { after, limit })),
          range(after + 1, Math.min(315, after + limit)),
          `${after} ${limit}`,
        )
    }
    for (let n = 0; n < 200; n++) void log.append('b', events(6))
    assert.deepEqual(seqs(await log.read('b')), range(1, 1000))
    assert.deepEqual(seqs(await log.read('b', { after: 150, limit: 1050 })), range(151, 1200))
  })
  on('expect is a compare-and-set: all events or none', async log => {
    assert.equal(await log.append('a', events(2), { expect: 0 }), 2)
    const error = await log.append('a', events(2), { expect: 0 }).catch((thrown: unknown) => thrown)
    assert.ok(hasCode(error, 'STREAM_MOVED') && error.values['head'] === 2)
    await refuses('STREAM_MOVED', () => log.append('a', events(1), { expect: 3 }))
    assert.equal(await log.append('a', [], { expect: 2 }), 2)
    await refuses('STREAM_MOVED', () => log.append('a', [], { expect: 1 }))
    assert.equal(await log.append('new', []), 0)
    const tries = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) => log.append('a', events(3, n), { expect: 2 })),
    )
    assert.equal(tries.filter(({ status }) => status === 'fulfilled').length, 1)
    assert.equal((await log.bounds('a')).last, 5)
  })
  on('appends at once keep their order, and what is kept is a copy', async log => {
    const mine = [{ type: 'x', data: { n: [1] } }]
    const lasts = await Promise.all(
      range(1, 100).map(n => log.append('a', n === 1 ? mine : [event(n)])),
    )
    assert.deepEqual(lasts, range(1, 100))
    mine[0]!.data.n.push(2)
    const [first] = await log.read('a', { limit: 1 })
    assert.deepEqual(first, { type: 'x', data: { n: [1] }, seq: 1 })
    ;(first!.data as { n: number[] }).n.push(3)
    assert.deepEqual((await log.read('a', { limit: 1 }))[0]!.data, { n: [1] })
  })
  on('what is too large or misnamed is refused', async log => {
    const { appendBytesMax, streamNameMax } = log.limits
    await refuses('DOCUMENT_TOO_LARGE', () =>
      log.append('a', [{ type: 'x', data: 'x'.repeat(appendBytesMax) }]),
    )
    await refuses('DOCUMENT_TOO_LARGE', () =>
      log.append('a', [{ type: 'x', data: 'é'.repeat(appendBytesMax / 2) }]),
    )
    assert.equal(await log.append('a', [{ type: 'x', data: 'x'.repeat(appendBytesMax - 100) }]), 1)
    await refuses('INVALID_FIELD', () => log.append('', events(1)))
    await refuses('INVALID_FIELD', () => log.append('x'.repeat(streamNameMax + 1), events(1)))
    assert.equal(await log.append('x'.repeat(streamNameMax), events(1)), 1)
    for (const bad of [-1, 1.5, NaN]) {
      await refuses('INVALID_FIELD', () => log.append('a', events(1), { expect: bad }))
      await refuses('INVALID_FIELD', () => log.read('a', { after: bad }))
      await refuses('INVALID_FIELD', () => log.trim('a', bad))
    }
    await refuses('INVALID_FIELD', () => log.read('a', { limit: 0 }))
    assert.deepEqual(await log.bounds('a'), { first: 1, last: 1 })
  })
}

function trims(on: On): void {
  on('what was trimmed is gone and its seqs are never reused', async log => {
    await log.append('a', events(5))
    await log.append('a', events(5, 6))
    await log.trim('a', 7)
    assert.deepEqual(await log.bounds('a'), { first: 8, last: 10 })
    assert.deepEqual(seqs(await log.read('a')), [8, 9, 10])
    assert.deepEqual(seqs(await log.read('a', { after: 2, limit: 2 })), [8, 9])
    await log.trim('a', 3)
    assert.deepEqual(await log.bounds('a'), { first: 8, last: 10 })
    await log.trim('a', 100)
    assert.deepEqual(await log.bounds('a'), { first: 11, last: 10 })
    assert.deepEqual(await log.read('a'), [])
    assert.equal(await log.append('a', events(2), { expect: 10 }), 12)
    assert.deepEqual(seqs(await log.read('a')), [11, 12])
    await log.trim('unknown', 5)
    assert.deepEqual(await log.bounds('unknown'), { first: 1, last: 0 })
  })
  on('a removed stream is unknown', async log => {
    await log.append('a', events(5))
    await log.append('ab', events(1))
    await log.trim('a', 2)
    await log.remove('a')
    assert.deepEqual(await log.bounds('a'), { first: 1, last: 0 })
    assert.deepEqual(await log.read('a'), [])
    assert.deepEqual(seqs(await log.read('ab')), [1])
    assert.equal(await log.append('a', events(1), { expect: 0 }), 1)
  })
}

function follows(on: On): void {
  on('a follower gets each event once, in order, from wherever it begins', async log => {
    await log.append('a', events(600))
    const followers = [0, 1, 299, 600, 650].map(after => followTo(log, 'a', 700, after))
    for (let n = 601; n <= 700; n += 4) await log.append('a', events(4, n))
    for (const [at, after] of [0, 1, 299, 600, 650].entries()) {
      const found = await followers[at]!
      assert.deepEqual(seqs(found), range(after + 1, 700))
      assert.deepEqual(found.at(-1), { ...event(700), seq: 700 })
    }
  })
  on(
    'an abort ends it without an error: before it began, while it waits, and between batches',
    async log => {
      await log.append('a', events(1))
      const gone = await Array.fromAsync(log.follow('a', { signal: AbortSignal.abort() }))
      assert.deepEqual(gone, [])
      const waiting = new AbortController()
      const found: number[] = []
      const ended = (async () => {
        for await (const batch of log.follow('a', { signal: waiting.signal }))
          found.push(...seqs(batch))
      })()
      while (found.length === 0) await new Promise(resolve => setTimeout(resolve, 1))
      waiting.abort()
      await ended
      await log.append('a', events(1))
      assert.deepEqual(found, [1])
      const between = new AbortController()
      for await (const batch of log.follow('a', { signal: between.signal })) {
        found.push(...seqs(batch))
        between.abort()
      }
      assert.deepEqual(found, [1, 1, 2])
    },
  )
  on('returning the iterator ends a call that waits', async log => {
    const iterator = log
      .follow('a', { signal: new AbortController().signal })
      [Symbol.asyncIterator]()
    const waiting = iterator.next()
    await log.ping()
    await iterator.return!()
    assert.deepEqual(await waiting, { done: true, value: undefined })
    assert.deepEqual(await iterator.next(), { done: true, value: undefined })
  })
  on('followers of one stream are handed the same event objects', async log => {
    const iterators = [1, 2].map(() =>
      log.follow('a', { signal: new AbortController().signal })[Symbol.asyncIterator](),
    )
    await log.append('a', events(1))
    for (const iterator of iterators) assert.deepEqual(seqs((await iterator.next()).value), [1])
    for (let newest = 3, isShared = false; !isShared; newest += 2) {
      const waiting = iterators.map(iterator => readUpTo(iterator, newest))
      await log.append('a', events(2))
      isShared = new Set(await Promise.all(waiting)).size === 1
      assert.ok(newest < 400, 'one of them reads what came before for ever')
    }
    for (const iterator of iterators) await iterator.return!()
  })
  on('thousands of followers on streams of their own', async log => {
    // One each, as clients have: a signal looks through its listeners when one is added.
    const stops = range(1, 10_000).map(() => new AbortController())
    let got = 0
    const all = stops.map(async ({ signal }, n) => {
      for await (const batch of log.follow(`s${n + 1}`, { signal })) got += batch.length
    })
    await log.ping()
    for (const n of range(1, 50)) await log.append(`s${n * 100}`, events(2))
    await log.durable()
    const deadline = Date.now() + 60_000
    while (got < 100 && Date.now() < deadline) await new Promise(resolve => setTimeout(resolve, 5))
    for (const stop of stops) stop.abort()
    await Promise.all(all)
    assert.equal(got, 100)
  })
}

function slowReaders(on: On): void {
  on('a reader that falls far behind misses nothing', async log => {
    const iterator = log
      .follow('a', { signal: new AbortController().signal })
      [Symbol.asyncIterator]()
    await log.append('a', events(1))
    const found = [...(await iterator.next()).value]
    for (let n = 0; n < 400; n++) void log.append('a', events(5))
    await log.durable()
    while (found.length < 2001) {
      const { value } = await iterator.next()
      assert.ok(value.length <= 1000)
      found.push(...value)
    }
    assert.deepEqual(seqs(found), range(1, 2001))
    await iterator.return!()
  })
  on('a reader that stops in between, again and again, sees an unbroken sequence', async log => {
    const writing = (async () => {
      for (let n = 0; n < 300; n++) {
        await log.append('a', events(1 + (n % 5)))
        if (n % 10 === 0) await log.durable()
      }
    })()
    const found: LoggedEvent[] = []
    let laps = 0
    for await (const batch of log.follow('a', { signal: new AbortController().signal })) {
      found.push(...batch)
      if (found.at(-1)!.seq >= 900) break
      if (laps++ % 3 === 0) await new Promise(resolve => setTimeout(resolve, laps % 7))
    }
    await writing
    assert.deepEqual(seqs(found), range(1, 900))
  })
  on('a follower goes on past what was trimmed under it', async log => {
    await log.append('a', events(10))
    await log.trim('a', 8)
    assert.deepEqual(seqs(await followTo(log, 'a', 10)), [9, 10])
  })
}

function states(test: Test, name: string, { place, survives }: Kit): void {
  test(`${name}: after closing, every call is refused and followers have ended`, async () => {
    const at = await place()
    const { log, close } = await at.open()
    const waiting = followTo(log, 'a', 1).catch((error: unknown) => error)
    await log.ping()
    await close()
    await close()
    assert.ok(hasCode(await waiting, 'UNAVAILABLE'))
    const { signal } = new AbortController()
    for (const call of [
      () => log.append('a', events(1)),
      () => log.read('a'),
      () => log.bounds('a'),
      () => log.trim('a', 1),
      () => log.rewrite('a', { from: 1, through: 1 }, [{ ...event(1), seq: 1 }]),
      () => log.remove('a'),
      () => log.durable(),
      () => log.ping(),
      () => Array.fromAsync(log.follow('a', { signal })),
    ])
      await refuses('UNAVAILABLE', call)
    await at.clean?.()
  })
  if (!survives) return
  test(`${name}: streams, trims and numbers are there after opening again`, async () => {
    const at = await place()
    const first = await at.open()
    await first.log.append('a', events(5))
    await first.log.append('b', events(5))
    await first.log.trim('a', 5)
    await first.log.trim('b', 2)
    await first.log.append('c', events(5))
    await first.log.rewrite('c', { from: 1, through: 4 }, [{ ...event(9), seq: 4 }])
    await first.close()
    const second = await at.open()
    assert.deepEqual(await second.log.bounds('a'), { first: 6, last: 5 })
    assert.deepEqual(seqs(await second.log.read('b')), [3, 4, 5])
    assert.deepEqual(await second.log.read('c'), [
      { ...event(9), seq: 4 },
      { ...event(5), seq: 5 },
    ])
    assert.equal(await second.log.append('a', events(1), { expect: 5 }), 6)
    await second.close()
    await at.clean?.()
  })
}
