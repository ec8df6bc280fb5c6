// How often somebody may do something.
import { port, type Lifecycle } from './token.ts'

/**
 * Either a bucket (`perSecond` sustained, `burst` at once), or a window: `count` within `perMs`,
 * counted from the first of them.
 */
export type Rate =
  | { readonly perSecond: number; readonly burst: number }
  | { readonly count: number; readonly perMs: number }
/** A rate as a plugin declares it. `about` says what is counted, for the list of settings. */
export type RateSpec = Rate & { readonly about?: string }
/** Counts what subjects do. */
export type RateLimiter = Lifecycle & {
  /**
   * `name`: of the limit; `subject`: who is counted, such as a user's id; `cost`: how many it
   * counts for, default 1. 0 when it is allowed and counted, else the milliseconds to wait; a
   * refused try is not counted.
   */
  take(name: string, subject: string, rate: Rate, cost?: number): Promise<number> | number
  /** Takes back what `take` has counted, such as a try that turned out to be no guess. */
  refund(name: string, subject: string, rate: Rate, cost?: number): Promise<void> | void
  /** Forgets what was counted. */
  reset(name: string, subject: string): Promise<void> | void
}

/**
 * For limits that no row of a contract names; the rates themselves are the plugin's `limits`, as
 * the operator set them, and it counts by no other names.
 *  @example plugins/identity/registration.ts#register
 */
export const Limits = port<RateLimiter>('limits')
