// What every event log promises to whoever moves its streams elsewhere.
import assert from 'node:assert/strict'
import type { EventlogEngine, LoggedEvent } from '#ports/eventlog.ts'
import { events, followTo, seqs, type On } from './common.ts'
import { refuses } from '../runner.ts'

const own = (...at: number[]): LoggedEvent[] => at.map(seq => ({ seq, type: 'own', data: { seq } }))
const told = async (log: EventlogEngine, stream: string) => ({
  ...(await log.bounds(stream)),
  seqs: seqs(await log.read(stream)),
})

export function restores(on: On): void {
  on('the names of all streams are told in the order of their bytes, page by page', async log => {
    const names = ['a', 'a/b', 'a-b', 'ab', 'b', 'é', '\uffee', '🦊']
    for (const name of names) await log.append(name, events(3))
    await log.append('gone', events(1))
    await log.remove('gone')
    // A stream that was forgotten to its end still counts on from there.
    await log.trim('b', 3)
    const sorted = names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    assert.deepEqual(await log.streams({ limit: 100 }), sorted)
    for (const limit of [1, 3]) {
      const found: string[] = []
      for (
        let page: string[];
        (page = await log.streams({ ...(found.length > 0 ? { after: found.at(-1)! } : {}), limit }))
          .length > 0;
        found.push(...page)
      )
        assert.ok(page.length <= limit)
      assert.deepEqual(found, sorted)
    }
    await refuses('INVALID_FIELD', () => log.streams({ limit: 0 }))
  })
  on(
    'restored events keep their seqs, whether something is missing before or among them, ' +
      'and the stream goes on',
    async log => {
      await log.restore('a', 0, own(1, 2, 3))
      await log.restore('a', 3, own(4))
      assert.deepEqual(await told(log, 'a'), { first: 1, last: 4, seqs: [1, 2, 3, 4] })
      assert.deepEqual(await log.read('a', { after: 3 }), own(4))
      await log.restore('b', 30, own(31, 40, 41, 50))
      await log.restore('b', 50, [{ seq: 51, type: 'x', data: ['é🦊\u0000'], hidden: true }])
      assert.deepEqual(await told(log, 'b'), { first: 31, last: 51, seqs: [31, 40, 41, 50, 51] })
      for (const after of [0, 30, 35, 40, 49, 50])
        for (const limit of [1, 2, 30])
          assert.deepEqual(
            seqs(await log.read('b', { after, limit })),
            [31, 40, 41, 50, 51].filter(seq => seq > after).slice(0, limit),
            `after ${after}, ${limit} at most`,
          )
      assert.equal((await log.read('b', { after: 50 }))[0]!.hidden, true)
      assert.equal(await log.append('b', events(2), { expect: 51 }), 53)
      assert.deepEqual(seqs(await followTo(log, 'b', 53, 40)), [41, 50, 51, 52, 53])
      await log.trim('b', 45)
      await log.rewrite('b', { from: 46, through: 52 }, own(52))
      assert.deepEqual(await told(log, 'b'), { first: 46, last: 53, seqs: [52, 53] })
    },
  )
  on('a stream that was forgotten to its end is restored without an event', async log => {
    await log.restore('a', 7, [])
    assert.deepEqual(await told(log, 'a'), { first: 8, last: 7, seqs: [] })
    assert.deepEqual(await log.streams({ limit: 10 }), ['a'])
    await log.restore('a', 7, [])
    assert.equal(await log.append('a', events(1)), 8)
    await log.restore('unknown', 0, [])
    assert.deepEqual(await log.streams({ limit: 10 }), ['a'])
  })
  on('what does not follow on what is there is refused, and nothing changes', async log => {
    await log.restore('a', 10, own(11, 12))
    for (const [after, list] of [
      [11, own(12)],
      [13, own(14)],
      [0, own(1)],
      [10, own(11, 12)],
    ] as const)
      await refuses('STREAM_MOVED', () => log.restore('a', after, list))
    for (const [after, list] of [
      [12, own(12)],
      [12, own(14, 14)],
      [12, own(14, 13)],
      [-1, own(1)],
      [12, own(13.5)],
    ] as const)
      await refuses('INVALID_FIELD', () => log.restore('a', after, list))
    await refuses('DOCUMENT_TOO_LARGE', () =>
      log.restore('a', 12, [{ seq: 13, type: 'x', data: 'x'.repeat(log.limits.appendBytesMax) }]),
    )
    assert.deepEqual(await told(log, 'a'), { first: 11, last: 12, seqs: [11, 12] })
  })
}
