// What every event log promises to followers, also to slow ones.
import assert from 'node:assert/strict'
import type { LoggedEvent } from '#ports/eventlog.ts'
import { event, events, followTo, range, readUpTo, seqs, type On } from './common.ts'

export function follows(on: On): void {
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

export function slowReaders(on: On): void {
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
