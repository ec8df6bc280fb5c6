// Whole credits. The ledger entry is the only write: it carries the balance after it; keys come
// from identity, so that each happens once.
import { port, type Lifecycle } from './token.ts'

/**
 * `credit` adds to the balance, `hold` sets aside, `capture` ends a hold and takes, `release` ends
 * one and takes nothing.
 */
export type EntryKind = 'credit' | 'hold' | 'capture' | 'release'
/** One movement of an organisation's credits. */
export type Entry = {
  /** 1, 2, 3… within the organisation. */
  readonly seq: number
  /** The caller's, or made of it: what happens under one key happens once. */
  readonly key: string
  readonly kind: EntryKind
  /** Change of the balance: + for a credit, - for a capture, 0 for a hold or a release. */
  readonly amount: number
  /** Change of what is held. */
  readonly held: number
  /** Both as they stand after this entry. */
  readonly balanceAfter: number
  readonly heldAfter: number
  readonly reason: string
  /** Milliseconds since the epoch. */
  readonly at: number
}
/** Whole credits. */
export type Balance = {
  readonly balance: number
  readonly held: number
  /** balance - held */
  readonly available: number
}

/**
 * Amounts are whole and >= 0, else INVALID_FIELD. The same key with the same amount answers the
 * first entry again; with another amount: LEDGER_MISMATCH.
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
   * Ends the hold under `end:{of}`: takes `amount` (never more than was held), frees the rest.
   * NOT_FOUND without a hold.
   */
  capture(
    orgId: string,
    input: { readonly of: string; readonly amount: number; readonly reason: string },
  ): Promise<Entry>
  /** Ends the hold under `end:{of}` and takes nothing. NOT_FOUND without a hold. */
  release(orgId: string, input: { readonly of: string; readonly reason: string }): Promise<Entry>
  /** Zeros for an organisation without entries. */
  balance(orgId: string): Promise<Balance>
  /** Oldest first; seq > after; at most `limit` (default 100). */
  entries(
    orgId: string,
    options?: { readonly after?: number; readonly limit?: number },
  ): Promise<Entry[]>
  /** The entry under a key; undefined when there is none. */
  entry(orgId: string, key: string): Promise<Entry | undefined>
}

/**
 * Credits of an organisation. A plugin that takes or adds some declares it (`may.charge`,
 * `may.credit`); its holds are its own.
 *  @example plugins/billing/plugin.ts
 */
export const Billing = port<Ledger>('billing')
