// What every ledger promises.
import assert from 'node:assert/strict'
import type { Ledger } from '#ports/billing.ts'
import { credit, type Need, type On, type Place } from './billing/common.ts'
import { concurrency } from './billing/concurrency.ts'
import { entries } from './billing/entries.ts'
import { refusals } from './billing/refusals.ts'
import { repetition } from './billing/repetition.ts'
import { asking, refuses, type Lacking, type Test, withPlace } from './runner.ts'

type Kit = Lacking<Need> & { place: () => Promise<Place> }

export function billingKit(test: Test, name: string, { place, ...lacking }: Kit): void {
  const ask = asking(test, lacking)
  const on: On = (title, needs, run) =>
    ask(
      `${name}: ${title}`,
      needs,
      withPlace(place, async (ledger, at) => {
        const others: Ledger[] = []
        try {
          await run(ledger, async () => {
            const other = await at.another()
            others.push(other)
            return other
          })
        } finally {
          for (const other of others) await other.close()
        }
      }),
    )
  entries(on)
  repetition(on)
  refusals(on)
  concurrency(on)
  states(on)
}

function states(on: On): void {
  on(
    'another engine on the same ledger knows everything, also what is under way when one closes',
    ['another'],
    async (ledger, another) => {
      await credit(ledger, 10)
      await ledger.hold('o', { of: 'r', amount: 4 })
      const second = await another()
      assert.equal(
        (await second.capture('o', { of: 'r', amount: 4, reason: 'run' })).balanceAfter,
        6,
      )
      const late = second.credit('o', { key: 'late', amount: 1, reason: 'x' })
      await Promise.all([second.close(), second.close(), late])
      assert.ok(await ledger.entry('o', 'late'))
    },
  )
  on('closed, it refuses every call; closing twice is allowed', [], async ledger => {
    await ledger.ping()
    await Promise.all([ledger.close(), ledger.close()])
    for (const call of [
      () => credit(ledger, 1),
      () => ledger.hold('o', { of: 'x', amount: 1 }),
      () => ledger.capture('o', { of: 'x', amount: 1, reason: '' }),
      () => ledger.release('o', { of: 'x', reason: '' }),
      () => ledger.balance('o'),
      () => ledger.entries('o'),
      () => ledger.entry('o', 'k'),
      () => ledger.ping(),
    ])
      await refuses('UNAVAILABLE', call)
  })
}
