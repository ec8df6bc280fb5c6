// What every event log promises of streams that were trimmed or removed.
import assert from 'node:assert/strict'
import { events, seqs, type On } from './common.ts'

export function trims(on: On): void {
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
