// Rate limits: how often somebody may do something.
import { port, type Lifecycle } from './token.ts'

/**
 * A token bucket (`perSecond` in the long run, `burst` at once), or a window: `count` within
 * `perMs` from the first use.
 */
export type Rate =
  | { readonly perSecond: number; readonly burst: number }
  | { readonly count: number; readonly perMs: number }
/** A rate as a plugin declares it. `about` says what is counted, for the list of settings. */
export type RateSpec = Rate & { readonly about?: string }
/** Counts what subjects do. */
export type RateLimiter = Lifecycle & {
  /**
   * Counts one use and answers 0, or answers the milliseconds to wait and counts nothing. `name`:
   * the limit. `subject`: who is counted, such as a user's id. `cost`: how many uses it counts as,
   * default 1.
   */
  take(name: string, subject: string, rate: Rate, cost?: number): Promise<number> | number
  /** Takes back what `take` counted, for example when a try was not a wrong guess. */
  refund(name: string, subject: string, rate: Rate, cost?: number): Promise<void> | void
  /** Forgets what was counted for the subject. */
  reset(name: string, subject: string): Promise<void> | void
}

/**
 * Rate limits that no row of a contract names. The plugin declares its rates as `limits`, and the
 * operator can change them. It cannot count under other names.
 *  @example plugins/identity/accounts/registration.ts#register
 */
export const Limits = port<RateLimiter>('limits')
