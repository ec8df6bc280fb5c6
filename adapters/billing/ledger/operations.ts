// What is asked of the ledger, and what each operation changes.
import { fault } from '#contracts/faults.ts'
import type { Entry, EntryKind } from '#ports/billing.ts'
import { entryOf, type Row } from './rows.ts'

export type Ask = {
  /** Of the storage, when it was asked. */
  readonly epoch: number | undefined
  readonly kind: EntryKind
  readonly key: string
  /** The key of the hold that this ends. */
  readonly ends?: string
  readonly amount: number
  readonly reason: string
  readonly resolve: (entry: Entry) => void
  readonly reject: (error: unknown) => void
}

/**
 * What an operation changes, `hold` being what its hold set aside. Never more is taken than was
 * held.
 */
export function effect(
  { kind, amount }: Ask,
  hold: number,
): { readonly amount: number; readonly held: number } {
  if (kind === 'credit') return { amount, held: 0 }
  if (kind === 'hold') return { amount: 0, held: amount }
  // Subtracted from 0, for the minus of 0 is another number to a comparison.
  return { amount: kind === 'capture' ? 0 - Math.min(amount, hold) : 0, held: 0 - hold }
}

/** Ends an operation whose key is already taken. */
export function repeat(ask: Ask, row: Row, hold: number): void {
  const { amount, held } = effect(ask, hold)
  if (row.amount === amount && row.held === held) ask.resolve(entryOf(row))
  else ask.reject(fault('LEDGER_MISMATCH', { key: ask.key }))
}
