// Rate limits within one process.
import { defineAdapter } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { RateLimiter } from '#ports/limits.ts'
import { gate } from '../_shared/gate.ts'
import { wholeOption } from '../_shared/options.ts'
import { judge, type Count } from '../_shared/rates.ts'

const SUBJECTS_MAX = 100_000
export function memoryLimits({ clock, subjectsMax = SUBJECTS_MAX }: { clock: Pick<Clock, 'monotonic'>; subjectsMax?: number }): RateLimiter {
  const counts = new Map<string, Count>()
  const { check, shut } = gate('The rate limiter')
  const keyOf = (name: string, subject: string): string => `${name}\n${subject}`
  return {
    take(name, subject, rate, cost = 1) {
      check()
      const key = keyOf(name, subject)
      const { count, waitMs } = judge(name, rate, { known: counts.get(key), now: clock.monotonic(), cost })
      // Taking the entry out first keeps the map in the order of last use: its first entry has been idle for longest.
      counts.delete(key)
      counts.set(key, count)
      if (counts.size > subjectsMax) counts.delete(counts.keys().next().value!)
      return waitMs
    },
    reset(name, subject) {
      check()
      counts.delete(keyOf(name, subject))
    },
    async ping() {
      check()
    },
    async close() {
      if (shut()) counts.clear()
    },
  }
}

export default defineAdapter<RateLimiter>({
  port: 'limits',
  scheme: 'memory', fleeting: true,
  options: { subjects: `How many subjects are remembered; beyond it the longest idle is forgotten; default ${SUBJECTS_MAX}.` },
  open: async ({ url, clock }) => memoryLimits({ clock, subjectsMax: wholeOption(url, 'subjects', SUBJECTS_MAX, { min: 1 }) }),
})
