// Many calls at once add up.
import assert from 'node:assert/strict'
import { refuses } from '../runner.ts'
import { adds, credit, numbers, onBoth, type On } from './common.ts'

export function concurrency(on: On): void {
  onBoth(on, '200 holds at once never overdraw', async (ledger, other) => {
    await credit(ledger, 1000)
    const tries = await Promise.allSettled(
      numbers(200).map(n => (n % 2 ? ledger : other).hold('o', { of: `r${n}`, amount: 7 })),
    )
    assert.equal(tries.filter(({ status }) => status === 'fulfilled').length, Math.floor(1000 / 7))
    for (const one of tries)
      if (one.status === 'rejected')
        await refuses('INSUFFICIENT_CREDITS', () => Promise.reject(one.reason as Error))
    await adds(ledger)
  })
  onBoth(on, 'credits, holds and ends of many runs add up', async (ledger, other) => {
    const both = [ledger, other]
    await credit(ledger, 100_000)
    await Promise.all(
      numbers(100).map(async n => {
        const [one, two] = [both[n % 2]!, both[(n + 1) % 2]!]
        await one.hold('o', { of: `r${n}`, amount: n })
        if (n % 5 === 0) await one.credit('o', { key: `k${n}`, amount: 3, reason: 'gift' })
        await (n % 4 === 0
          ? two.release('o', { of: `r${n}`, reason: 'no' })
          : two.capture('o', { of: `r${n}`, amount: n, reason: 'run' }))
      }),
    )
    const taken = numbers(100)
      .filter(n => n % 4 !== 0)
      .reduce((sum, n) => sum + n, 0)
    assert.deepEqual(await ledger.balance('o'), {
      balance: 100_060 - taken,
      held: 0,
      available: 100_060 - taken,
    })
    await adds(ledger)
  })
}
