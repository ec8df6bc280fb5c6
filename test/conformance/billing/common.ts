// What the parts of the ledger's kit share.
import assert from 'node:assert/strict'
import type { Ledger } from '#ports/billing.ts'

/** `another`: a second engine on the same ledger, as another process has it. */
export type Place = { open(): Promise<Ledger>; another(): Promise<Ledger>; clean(): Promise<void> }
export type Need = 'another'
export type On = (
  title: string,
  needs: readonly Need[],
  run: (ledger: Ledger, another: () => Promise<Ledger>) => Promise<void>,
) => void

export const numbers = (count: number) => Array.from({ length: count }, (_, n) => n)
export const credit = (ledger: Ledger, amount: number, key = `c${amount}`, orgId = 'o') =>
  ledger.credit(orgId, { key, amount, reason: 'gift' })

/** Every entry follows from the one before it, and the last one is the balance. */
export async function adds(ledger: Ledger, orgId = 'o'): Promise<void> {
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

/** Asked of one engine, and of two on the same ledger. */
export function onBoth(
  on: On,
  title: string,
  run: (ledger: Ledger, other: Ledger) => Promise<void>,
): void {
  on(title, [], ledger => run(ledger, ledger))
  on(`${title}, in two processes`, ['another'], async (ledger, another) =>
    run(ledger, await another()),
  )
}
