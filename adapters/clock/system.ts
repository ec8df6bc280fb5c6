// The computer's own time and randomness.
import { randomBytes, randomInt } from 'node:crypto'
import { defineAdapter } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import { wholeOption } from '../_shared/options.ts'
import { uuids } from './lib/uuid7.ts'

/** The longest wait of setTimeout; longer sleeps use several. */
const timerMsMax = 2 ** 31 - 1
const randomSteps = 2 ** 47

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.reject(signal.reason)
  return new Promise((resolve, reject) => {
    let left = Math.max(0, ms)
    let timer: NodeJS.Timeout
    const aborted = (): void => {
      clearTimeout(timer)
      reject(signal!.reason)
    }
    const wait = (): void => {
      const part = Math.min(left, timerMsMax)
      left -= part
      timer = setTimeout(left > 0 ? wait : woken, part).unref()
    }
    const woken = (): void => {
      signal?.removeEventListener('abort', aborted)
      resolve()
    }
    signal?.addEventListener('abort', aborted, { once: true })
    wait()
  })
}

/** `aheadMs`: milliseconds by which the wall clock is wrong, for tests of wrong clocks. */
export const systemClock = (aheadMs = 0): Clock => ({
  now: () => Date.now() + aheadMs,
  monotonic: () => performance.now(),
  sleep,
  id: uuids({ now: () => Date.now() + aheadMs, randomBytes }),
  randomBytes: count => randomBytes(count),
  random: () => randomInt(randomSteps) / randomSteps,
})

export default defineAdapter<Clock>({
  port: 'clock',
  scheme: 'system',
  options: { ahead_ms: 'For tests: by how much the time of day is wrong; default 0.' },
  open: async ({ url }) => systemClock(wholeOption(url, 'ahead_ms', 0, { min: -86_400_000 })),
})
