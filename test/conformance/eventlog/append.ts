// What every event log promises of appends, and of reading what they wrote.
import assert from 'node:assert/strict'
import { hasCode } from '#contracts/faults.ts'
import { refuses } from '../runner.ts'
import { event, events, range, seqs, type On } from './common.ts'

export function appends(on: On): void {
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
