// Time, randomness and identifiers: everything that would make two runs of the same program differ.
import { port } from './token.ts'

export type Clock = {
  /** Milliseconds since the epoch. */
  now(): number
  /** Milliseconds that never go back; comparable within one process only. */
  monotonic(): number
  /** Rejects with the signal's reason when it aborts. Never keeps the process alive. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
  /**
   * A UUID of version 7 (RFC 9562, section 5.7): later ids sort after earlier ones of the same
   * process. `after`: and after this one, whatever the clock of the process that made it said.
   */
  id(after?: string): string
  /** Cryptographically strong. */
  randomBytes(count: number): Uint8Array
  /** 0 <= x < 1, for jitter. */
  random(): number
}

/** A plugin takes time, randomness and ids from here alone: a test or a simulation gives it others.
 *  @example plugins/tools/current-time.ts#currentTime */
export const SystemClock = port<Clock>('clock')
