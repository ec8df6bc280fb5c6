// What every ledger promises.
import assert from 'node:assert/strict'
import type { Ledger } from '#ports/billing.ts'
import { asking, refuses, type Lacking, type Test } from './runner.ts'

/** `another`: a second engine on the same ledger, as another process has it. */
type Place = { open(): Promise<Ledger>; another(): Promise<Ledger>; clean(): Promise<void> }
type Need = 'another'
type Kit = Lacking<Need> & { place: () => Promise<Place> }
type On = (
  title: string,
  needs: readonly Need[],
  run: (ledger: Ledger, another: () => Promise<Ledger>) => Promise<void>,
) => void

const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)
const credit = (ledger: Ledger, amount: number, key = `c${amount}`, orgId = 'o') =>
  ledger.credit(orgId, { key, amount, reason: 'gift' })

/** Every entry follows from the one before it, and the last one is the balance. */
async function adds(ledger: Ledger, orgId = 'o'): Promise<void> {
  let [balance, held, seq] = [0, 0, 0]
  for (let more = true; more; ) {
    const page = await ledger.entries(orgId, { after: seq, limit: 500 })
    for (const entry of page) {
      assert.equal(entry.seq, ++seq)
      assert.equal(entry.balanceAfter, (balance += entry.amount))
      assert.equal(entry.heldAfter, (held += entry.held))
      assert.ok(balance >= held && held >= 0, 'never overdrawn')
    }
    more = page.length === 500
  }
  assert.deepEqual(await ledger.balance(orgId), { balance, held, available: balance - held })
}

export function billingKit(test: Test, name: string, { place, ...lacking }: Kit): void {
  const ask = asking(test, lacking)
  const on: On = (title, needs, run) =>
    ask(`${name}: ${title}`, needs, async () => {
      const at = await place()
      const ledger = await at.open()
      const others: Ledger[] = []
      try {
        await run(ledger, async () => {
          const other = await at.another()
          others.push(other)
          return other
        })
      } finally {
        for (const other of others) await other.close()
        await ledger.close()
        await at.clean()
      }
    })
  entries(on)
  repetition(on)
  refusals(on)
  crowds(on)
  states(on)
}

/** Asked of one engine, and of two on the same ledger. */
function onBoth(
  on: On,
  title: string,
  run: (ledger: Ledger, other: Ledger) => Promise<void>,
): void {
  on(title, [], ledger => run(ledger, ledger))
  on(`${title}, in two processes`, ['another'], async (ledger, another) =>
    run(ledger, await another()),
  )
}

function entries(on: On): void {
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

function repetition(on: On): void {
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

function refusals(on: On): void {
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

function crowds(on: On): void {
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
