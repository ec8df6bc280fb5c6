// What a ledger refuses, without writing anything.
import assert from 'node:assert/strict'
import { refuses } from '../runner.ts'
import { adds, credit, onBoth, type On } from './common.ts'

export function refusals(on: On): void {
  onBoth(
    on,
    'what is not available cannot be held, and nothing is written',
    async (ledger, other) => {
      await refuses('INSUFFICIENT_CREDITS', () => ledger.hold('o', { of: 'r', amount: 1 }))
      await credit(ledger, 10)
      await ledger.hold('o', { of: 'r1', amount: 6 })
      assert.match(
        await refuses('INSUFFICIENT_CREDITS', () => ledger.hold('o', { of: 'r2', amount: 5 })),
        /\b4\b.*\b5\b/,
      )
      assert.equal((await ledger.entries('o')).length, 2)
      // What another process credited counts at once.
      await credit(other, 1, 'more')
      await ledger.hold('o', { of: 'r2', amount: 5 })
      await adds(ledger)
    },
  )
  on('an end without a hold is not found', [], async ledger => {
    await refuses('NOT_FOUND', () => ledger.capture('o', { of: 'r', amount: 1, reason: 'x' }))
    await refuses('NOT_FOUND', () => ledger.release('o', { of: 'r', reason: 'x' }))
  })
  on(
    'amounts are whole, not negative, and add up to a safe number; keys of holds are theirs',
    [],
    async ledger => {
      for (const amount of [-1, 0.5, NaN, Infinity, 2 ** 53]) {
        await refuses('INVALID_FIELD', () => credit(ledger, amount))
        await refuses('INVALID_FIELD', () => ledger.hold('o', { of: 'r', amount }))
        await refuses('INVALID_FIELD', () => ledger.capture('o', { of: 'r', amount, reason: 'x' }))
      }
      for (const key of ['', 'hold:r', 'end:r'])
        await refuses('INVALID_FIELD', () => credit(ledger, 1, key))
      await credit(ledger, Number.MAX_SAFE_INTEGER)
      await refuses('INVALID_FIELD', () => credit(ledger, 1))
      await adds(ledger)
    },
  )
}
