// What is asked again is written once.
import assert from 'node:assert/strict'
import { refuses } from '../runner.ts'
import { adds, credit, numbers, onBoth, type On } from './common.ts'

export function repetition(on: On): void {
  onBoth(
    on,
    'the same again answers the first entry; another amount is an error',
    async (ledger, other) => {
      for (const again of [ledger, other]) {
        const first = await credit(ledger, 100, 'k')
        assert.deepEqual(await credit(again, 100, 'k'), first)
        await refuses('LEDGER_MISMATCH', () => credit(again, 101, 'k'))
        const hold = await ledger.hold('o', { of: 'r', amount: 100 })
        assert.deepEqual(await again.hold('o', { of: 'r', amount: 100 }), hold)
        await refuses('LEDGER_MISMATCH', () => again.hold('o', { of: 'r', amount: 99 }))
        const end = await ledger.capture('o', { of: 'r', amount: 40, reason: 'run' })
        assert.deepEqual(await again.capture('o', { of: 'r', amount: 40, reason: 'again' }), end)
        await refuses('LEDGER_MISMATCH', () =>
          again.capture('o', { of: 'r', amount: 41, reason: 'run' }),
        )
        await refuses('LEDGER_MISMATCH', () => again.release('o', { of: 'r', reason: 'run' }))
        // Its amount is not available any more, but it was.
        assert.deepEqual(await again.hold('o', { of: 'r', amount: 100 }), hold)
      }
      assert.equal((await ledger.entries('o')).length, 3)
      await adds(ledger)
    },
  )
  onBoth(on, 'many repetitions at once are one entry', async (ledger, other) => {
    await credit(ledger, 100)
    const held = await Promise.all(
      numbers(60).map(n => (n % 2 ? ledger : other).hold('o', { of: 'r', amount: 60 })),
    )
    assert.equal(new Set(held.map(({ seq }) => seq)).size, 1)
    const ends = await Promise.allSettled(
      numbers(60).map(n =>
        n % 3
          ? (n % 2 ? ledger : other).capture('o', { of: 'r', amount: 60, reason: 'run' })
          : ledger.release('o', { of: 'r', reason: 'no' }),
      ),
    )
    const [captured, released] = [ends.filter((_, n) => n % 3), ends.filter((_, n) => n % 3 === 0)]
    const won = (list: typeof ends) => list.every(({ status }) => status === 'fulfilled')
    assert.ok(won(captured) !== won(released), 'either all captures or all releases')
    assert.equal((await ledger.entries('o')).length, 3)
    await adds(ledger)
  })
  on(
    'a hold and its end at once, and many keys that exist already among new ones',
    [],
    async ledger => {
      await credit(ledger, 1000)
      const [, end] = await Promise.all([
        ledger.hold('o', { of: 'r', amount: 5 }),
        ledger.capture('o', { of: 'r', amount: 5, reason: 'run' }),
      ])
      assert.equal(end.balanceAfter, 995)
      await Promise.all(numbers(150).map(n => ledger.hold('o', { of: `x${n}`, amount: 1 })))
      const again = await Promise.all(
        numbers(300).map(n => ledger.hold('o', { of: `x${n}`, amount: 1 })),
      )
      assert.deepEqual(
        again.slice(0, 150).map(({ key }) => key),
        numbers(150).map(n => `hold:x${n}`),
      )
      assert.equal((await ledger.balance('o')).held, 300)
      await adds(ledger)
    },
  )
}
