// Whole credits. The ledger entry is the only write: it carries the balance after it; keys come from identity, so that each happens once.
import { port, type Lifecycle } from './token.ts'

export type EntryKind = 'credit' | 'hold' | 'capture' | 'release'
export type Entry = {
  readonly seq: number
  readonly key: string
  readonly kind: EntryKind
  /** Change of the balance: + for a credit, - for a capture, 0 for a hold or a release. */
  readonly amount: number
  /** Change of what is held. */
  readonly held: number
  readonly balanceAfter: number
  readonly heldAfter: number
  readonly reason: string
  readonly at: number
}
export type Balance = { readonly balance: number; readonly held: number; /** balance - held */ readonly available: number }

/** Amounts are whole and >= 0, else INVALID_FIELD. The same key with the same amount answers the first entry again; with another amount: LEDGER_MISMATCH. */
export type Ledger = Lifecycle & {
  credit(orgId: string, input: { readonly key: string; readonly amount: number; readonly reason: string }): Promise<Entry>
  /** Sets credits aside under `hold:{of}`. INSUFFICIENT_CREDITS when they are not available. */
  hold(orgId: string, input: { readonly of: string; readonly amount: number }): Promise<Entry>
  /** Ends the hold under `end:{of}`: takes `amount` (never more than was held), frees the rest. NOT_FOUND without a hold. */
  capture(orgId: string, input: { readonly of: string; readonly amount: number; readonly reason: string }): Promise<Entry>
  /** Ends the hold under `end:{of}` and takes nothing. NOT_FOUND without a hold. */
  release(orgId: string, input: { readonly of: string; readonly reason: string }): Promise<Entry>
  balance(orgId: string): Promise<Balance>
  /** Oldest first; seq > after; at most `limit` (default 100). */
  entries(orgId: string, options?: { readonly after?: number; readonly limit?: number }): Promise<Entry[]>
  entry(orgId: string, key: string): Promise<Entry | undefined>
}

export const Billing = port<Ledger>('billing')
