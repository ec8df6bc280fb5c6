// What every event log promises of a stretch that was rewritten in fewer events.
import assert from 'node:assert/strict'
import type { EventlogEngine, LoggedEvent } from '#ports/eventlog.ts'
import { hasCode } from '#contracts/faults.ts'
import { events, followTo, seqs, type On } from './common.ts'
import { refuses } from '../runner.ts'

const merged = (...at: number[]): LoggedEvent[] =>
  at.map(seq => ({ seq, type: 'merged', data: { seq } }))

/** Ten appends of five events, and within them one longer one. */
async function filled(log: EventlogEngine): Promise<void> {
  for (let n = 0; n < 10; n++) await log.append('a', events(5, n * 5 + 1))
}

export function rewrites(on: On): void {
  on('a rewritten stretch is read from any seq; what lies around it stays', async log => {
    await filled(log)
    // Both ends lie in the middle of an append.
    await log.rewrite('a', { from: 8, through: 43 }, merged(20, 43))
    const expected = [1, 2, 3, 4, 5, 6, 7, 20, 43, 44, 45, 46, 47, 48, 49, 50]
    assert.deepEqual(await log.bounds('a'), { first: 1, last: 50 })
    for (const after of [0, 6, 7, 8, 19, 20, 42, 43, 49, 50]) {
      assert.deepEqual(
        seqs(await log.read('a', { after })),
        expected.filter(seq => seq > after),
        `after ${after}`,
      )
      for (const limit of [1, 2, 3, 30])
        assert.deepEqual(
          seqs(await log.read('a', { after, limit })),
          expected.filter(seq => seq > after).slice(0, limit),
          `after ${after}, ${limit} at most`,
        )
    }
    const all = await log.read('a')
    assert.deepEqual(all[6], { seq: 7, type: 'delta', data: { n: 7 } })
    assert.deepEqual(all[7], { seq: 20, type: 'merged', data: { seq: 20 } })
    assert.deepEqual(all[9], { seq: 44, type: 'delta', data: { n: 44 } })
  })
  on('rewriting again changes nothing, and what was rewritten may be rewritten', async log => {
    await filled(log)
    for (let times = 0; times < 2; times++)
      await log.rewrite('a', { from: 1, through: 30 }, merged(10, 30))
    assert.deepEqual(seqs(await log.read('a', { limit: 4 })), [10, 30, 31, 32])
    await log.rewrite('a', { from: 6, through: 50 }, [
      { seq: 50, type: 'x', data: null, hidden: true },
    ])
    assert.deepEqual(await log.read('a'), [{ seq: 50, type: 'x', data: null, hidden: true }])
    await log.rewrite('a', { from: 1, through: 50 }, merged(3, 50))
    assert.deepEqual(seqs(await log.read('a')), [3, 50])
  })
  on('the stream goes on, is trimmed and removed as ever', async log => {
    await filled(log)
    await log.rewrite('a', { from: 1, through: 50 }, merged(20, 50))
    assert.equal(await log.append('a', events(2, 51), { expect: 50 }), 52)
    assert.deepEqual(seqs(await log.read('a')), [20, 50, 51, 52])
    await log.trim('a', 30)
    assert.deepEqual(await log.bounds('a'), { first: 31, last: 52 })
    assert.deepEqual(seqs(await log.read('a')), [50, 51, 52])
    await log.remove('a')
    assert.deepEqual(await log.bounds('a'), { first: 1, last: 0 })
    assert.deepEqual(await log.read('a'), [])
  })
  on('followers pass a rewritten stretch and come to what is appended', async log => {
    for (let n = 0; n < 300; n++) await log.append('a', events(5, n * 5 + 1))
    await log.rewrite(
      'a',
      { from: 1, through: 1400 },
      Array.from({ length: 280 }, (_, n) => merged((n + 1) * 5)[0]!),
    )
    const following = followTo(log, 'a', 1502, 703)
    await log.append('a', events(2, 1501))
    const expected = [
      ...Array.from({ length: 139 }, (_, n) => 705 + n * 5),
      1400,
      ...Array.from({ length: 102 }, (_, n) => 1401 + n),
    ]
    assert.deepEqual(seqs(await following), expected)
  })
  on(
    'seqs outside the range, out of order or not up to its end are refused, and nothing changes',
    async log => {
      await filled(log)
      const before = await log.read('a')
      for (const [range, list] of [
        [{ from: 5, through: 9 }, merged(4, 9)],
        [{ from: 5, through: 9 }, merged(8, 7, 9)],
        [{ from: 5, through: 9 }, merged(8)],
        [{ from: 5, through: 9 }, merged(9, 10)],
        [{ from: 5, through: 9 }, []],
        [{ from: 0, through: 9 }, merged(9)],
        [{ from: 10, through: 9 }, merged(9)],
        [{ from: 5, through: 9 }, merged(6.5, 9)],
      ] as const)
        await refuses('INVALID_FIELD', () => log.rewrite('a', range, list))
      await assert.rejects(log.rewrite('a', { from: 5, through: 51 }, merged(51)), error =>
        hasCode(error, 'STREAM_MOVED'),
      )
      await assert.rejects(log.rewrite('unknown', { from: 1, through: 1 }, merged(1)), error =>
        hasCode(error, 'STREAM_MOVED'),
      )
      await refuses('DOCUMENT_TOO_LARGE', () =>
        log.rewrite('a', { from: 1, through: 5 }, [
          { seq: 5, type: 'x', data: 'x'.repeat(log.limits.appendBytesMax) },
        ]),
      )
      assert.deepEqual(await log.read('a'), before)
      assert.deepEqual(await log.bounds('unknown'), { first: 1, last: 0 })
    },
  )
}
