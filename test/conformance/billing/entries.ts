// What each entry carries, and whose it is.
import assert from 'node:assert/strict'
import { refuses } from '../runner.ts'
import { adds, credit, type On } from './common.ts'

export function entries(on: On): void {
  on('credits, holds, captures and releases carry the balance after them', [], async ledger => {
    const { at, ...first } = await credit(ledger, 100)
    assert.ok(at > 0)
    assert.deepEqual(first, {
      seq: 1,
      key: 'c100',
      kind: 'credit',
      amount: 100,
      held: 0,
      balanceAfter: 100,
      heldAfter: 0,
      reason: 'gift',
    })
    const hold = await ledger.hold('o', { of: 'r1', amount: 30 })
    assert.deepEqual(
      [hold.seq, hold.key, hold.kind, hold.amount, hold.held, hold.balanceAfter, hold.heldAfter],
      [2, 'hold:r1', 'hold', 0, 30, 100, 30],
    )
    await ledger.hold('o', { of: 'r2', amount: 70 })
    assert.deepEqual(await ledger.balance('o'), { balance: 100, held: 100, available: 0 })
    const end = await ledger.capture('o', { of: 'r1', amount: 12, reason: 'run' })
    assert.deepEqual(
      [
        end.seq,
        end.key,
        end.kind,
        end.amount,
        end.held,
        end.balanceAfter,
        end.heldAfter,
        end.reason,
      ],
      [4, 'end:r1', 'capture', -12, -30, 88, 70, 'run'],
    )
    const release = await ledger.release('o', { of: 'r2', reason: 'cancelled' })
    assert.deepEqual(
      [release.kind, release.amount, release.held, release.balanceAfter, release.heldAfter],
      ['release', 0, -70, 88, 0],
    )
    assert.deepEqual(await ledger.entry('o', 'end:r1'), end)
    assert.equal(await ledger.entry('o', 'end:r9'), undefined)
    assert.deepEqual(
      (await ledger.entries('o', { after: 1, limit: 2 })).map(({ seq }) => seq),
      [2, 3],
    )
    await adds(ledger)
  })
  on('organisations do not touch each other', [], async ledger => {
    await credit(ledger, 10, 'same')
    await credit(ledger, 20, 'same', 'p')
    await ledger.hold('o', { of: 'r', amount: 10 })
    await refuses('NOT_FOUND', () => ledger.release('p', { of: 'r', reason: 'x' }))
    assert.deepEqual(await ledger.balance('p'), { balance: 20, held: 0, available: 20 })
    assert.deepEqual(await ledger.balance('unknown'), { balance: 0, held: 0, available: 0 })
    assert.deepEqual(await ledger.entries('unknown'), [])
  })
  on(
    'a capture never takes more than was held, and nothing is a whole number too',
    [],
    async ledger => {
      await credit(ledger, 100)
      await ledger.hold('o', { of: 'r', amount: 10 })
      assert.equal((await ledger.capture('o', { of: 'r', amount: 50, reason: 'run' })).amount, -10)
      await ledger.hold('o', { of: 'free', amount: 0 })
      assert.deepEqual(
        await ledger
          .capture('o', { of: 'free', amount: 0, reason: 'run' })
          .then(({ amount, held }) => [amount, held]),
        [0, 0],
      )
      await adds(ledger)
    },
  )
}
