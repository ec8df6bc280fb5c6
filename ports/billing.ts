// The credit ledger. Credits are whole numbers. An entry is the only write, and it carries the
// balance after it. Each key has at most one entry, so a repeated call changes nothing.
import { port, type Lifecycle } from './token.ts'

/**
 * `credit` adds to the balance. `hold` sets credits aside. `capture` ends a hold and takes credits.
 * `release` ends a hold and takes nothing.
 */
export type EntryKind = 'credit' | 'hold' | 'capture' | 'release'
/** One movement of an organisation's credits. */
export type Entry = {
  /** 1, 2, 3… within the organisation. */
  readonly seq: number
  /**
   * The idempotency key: chosen by the caller, or derived from the hold. Each key has at most one
   * entry.
   */
  readonly key: string
  readonly kind: EntryKind
  /** Change of the balance: + for a credit, - for a capture, 0 for a hold or a release. */
  readonly amount: number
  /** Change of the held credits. */
  readonly held: number
  /** Balance and held credits after this entry. */
  readonly balanceAfter: number
  readonly heldAfter: number
  readonly reason: string
  /** Milliseconds since the epoch. */
  readonly at: number
}
/** Credits of one organisation, in whole credits. */
export type Balance = {
  readonly balance: number
  readonly held: number
  /** balance - held */
  readonly available: number
}

/**
 * Amounts are whole and >= 0, else INVALID_FIELD. The same key with the same amount answers the
 * first entry again. The same key with another amount is LEDGER_MISMATCH.
 */
export type Ledger = Lifecycle & {
  /** Adds credits under `key`. */
  credit(
    orgId: string,
    input: { readonly key: string; readonly amount: number; readonly reason: string },
  ): Promise<Entry>
  /** Sets credits aside under `hold:{of}`. INSUFFICIENT_CREDITS when they are not available. */
  hold(orgId: string, input: { readonly of: string; readonly amount: number }): Promise<Entry>
  /**
   * Ends the hold under `end:{of}`. Takes `amount`, which is never more than was held, and frees
   * the rest. NOT_FOUND without a hold.
   */
  capture(
    orgId: string,
    input: { readonly of: string; readonly amount: number; readonly reason: string },
  ): Promise<Entry>
  /** Ends the hold under `end:{of}` and takes nothing. NOT_FOUND without a hold. */
  release(orgId: string, input: { readonly of: string; readonly reason: string }): Promise<Entry>
  /** The balance; all zeros for an organisation without entries. */
  balance(orgId: string): Promise<Balance>
  /** Entries with seq > after, oldest first, at most `limit` (default 100). */
  entries(
    orgId: string,
    options?: { readonly after?: number; readonly limit?: number },
  ): Promise<Entry[]>
  /** The entry under a key; undefined when there is none. */
  entry(orgId: string, key: string): Promise<Entry | undefined>
}

/**
 * Credits of an organisation. A plugin that adds or takes credits declares it (`may.charge`,
 * `may.credit`). Its holds are in its own name space.
 *  @example plugins/billing/plugin.ts
 */
export const Billing = port<Ledger>('billing')
