// Time, randomness and identifiers: every source of difference between two runs of the same
// program.
import { port } from './token.ts'

export type Clock = {
  /** The wall clock, in milliseconds since the epoch. */
  now(): number
  /**
   * A steady clock in milliseconds: it never goes back. Compare its values only within one process.
   */
  monotonic(): number
  /**
   * Rejects with the signal's reason when the signal aborts. A sleep never keeps the process alive.
   */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /**
   * A UUID of version 7 (RFC 9562, section 5.7): later ids of one process sort after earlier ones.
   * The id also sorts after `after`, even if another process with another clock made `after`.
   */
  id(after?: string): string
  /** Cryptographically strong random bytes. */
  randomBytes(count: number): Uint8Array
  /** A random number, 0 <= x < 1, for jitter. */
  random(): number
}

/**
 * The only source of time, randomness and ids for a plugin. A test or a simulation can replace it.
 *  @example plugins/tools/current-time.ts#currentTime
 */
export const SystemClock = port<Clock>('clock')
