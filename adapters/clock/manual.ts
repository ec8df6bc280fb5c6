// A clock that moves only on command, with repeatable ids and randomness. For tests and
// simulations, never for production.
import { defineAdapter } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import { wholeOption } from '../_shared/options.ts'
import { uuids } from './lib/uuid7.ts'
import { seeded } from './manual/seeded.ts'

export type ManualClock = Clock & {
  /**
   * Moves the time on and wakes each sleeper at its own moment. A sleeper that sleeps again within
   * the span is woken again.
   */
  advance(ms: number): Promise<void>
  /**
   * Moves the time on in one step; every due sleeper wakes once, at the end. For spans in which
   * timers would fire a million times.
   */
  leap(ms: number): Promise<void>
  /** The number of sleepers. */
  sleeping(): number
  /** Runs everything that can run at the current time. */
  settle(): Promise<void>
}
type Sleeper = { readonly wakeAt: number; readonly order: number; readonly wake: () => void }

const startMs = Date.UTC(2030, 0, 1)

/** Runs a few turns of the event loop, so that promises and setImmediate callbacks run. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise(resolve => setImmediate(resolve))
}

export function manualClock(start = startMs, { seed = 1 }: { seed?: number } = {}): ManualClock {
  let time = start
  let order = 0
  const sleepers = new Set<Sleeper>()
  const random = seeded(seed)
  const randomBytes = (count: number): Uint8Array =>
    Uint8Array.from({ length: count }, () => random() * 256)

  const sleep = (ms: number, signal?: AbortSignal): Promise<void> => {
    if (signal?.aborted) return Promise.reject(signal.reason)
    return new Promise((resolve, reject) => {
      const sleeper: Sleeper = {
        wakeAt: time + Math.max(0, ms),
        order: order++,
        wake: () => {
          sleepers.delete(sleeper)
          signal?.removeEventListener('abort', aborted)
          resolve()
        },
      }
      const aborted = (): void => {
        sleepers.delete(sleeper)
        reject(signal!.reason)
      }
      sleepers.add(sleeper)
      signal?.addEventListener('abort', aborted, { once: true })
    })
  }
  const next = (until: number): Sleeper | undefined => {
    let first: Sleeper | undefined
    for (const one of sleepers)
      if (
        one.wakeAt <= until &&
        (first === undefined ||
          one.wakeAt < first.wakeAt ||
          (one.wakeAt === first.wakeAt && one.order < first.order))
      )
        first = one
    return first
  }
  const advance = async (ms: number): Promise<void> => {
    const until = time + ms
    await settle()
    for (let one = next(until); one !== undefined; one = next(until)) {
      time = Math.max(time, one.wakeAt)
      one.wake()
      await settle()
    }
    time = until
  }
  const leap = async (ms: number): Promise<void> => {
    await settle()
    time += ms
    for (const one of [...sleepers]
      .filter(({ wakeAt }) => wakeAt <= time)
      .sort((a, b) => a.wakeAt - b.wakeAt || a.order - b.order))
      one.wake()
    await settle()
  }
  return {
    now: () => time,
    monotonic: () => time - start,
    sleep,
    id: uuids({ now: () => time, randomBytes }),
    randomBytes,
    random,
    advance,
    leap,
    sleeping: () => sleepers.size,
    settle,
  }
}

export default defineAdapter<ManualClock>({
  port: 'clock',
  scheme: 'manual',
  options: {
    start: 'Milliseconds since the epoch at which the time stands; default 2030-01-01.',
    seed: 'Where the repeatable randomness begins; default 1.',
  },
  open: async ({ url }) =>
    manualClock(wholeOption(url, 'start', startMs), { seed: wholeOption(url, 'seed', 1) }),
})
