// Rate limits within one process. A bucket is the generic cell rate algorithm: one number, the moment at which the subject is at rest again.
import { fault } from '#contracts/faults.ts'
import { defineAdapter } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Rate, RateLimiter } from '#ports/limits.ts'
import { gate } from '../_shared/gate.ts'
import { wholeOption } from '../_shared/options.ts'

const SUBJECTS_MAX = 100_000
/** Sums of fractions of a millisecond are not exact; without this, the last of a full burst would be refused now and then. */
const ROUNDING_MS = 1e-6

/** `until`: when a bucket is at rest again, or when a window ends. */
type Count = { readonly until: number; readonly used: number }
type Verdict = { readonly count: Count; readonly waitMs: number }

function bucket(known: Count | undefined, { now, perSecond, burst, cost }: { now: number; perSecond: number; burst: number; cost: number }): Verdict {
  const from = Math.max(now, known?.until ?? now)
  const until = from + (cost * 1000) / perSecond
  const waitMs = until - now - (burst * 1000) / perSecond
  return waitMs <= ROUNDING_MS ? { count: { until, used: 0 }, waitMs: 0 } : { count: { until: from, used: 0 }, waitMs: Math.ceil(waitMs) }
}

function window(known: Count | undefined, { now, count, perMs, cost }: { now: number; count: number; perMs: number; cost: number }): Verdict {
  const open = known === undefined || known.until <= now ? { until: now + perMs, used: 0 } : known
  const used = open.used + cost
  return used <= count ? { count: { until: open.until, used }, waitMs: 0 } : { count: open, waitMs: Math.max(1, Math.ceil(open.until - now)) }
}

function judge(name: string, rate: Rate, { known, now, cost }: { known: Count | undefined; now: number; cost: number }): Verdict {
  const [most, pace] = 'burst' in rate ? [rate.burst, rate.perSecond] : [rate.count, rate.perMs]
  if (!(most >= 1 && pace > 0)) throw fault('INVALID_FIELD', { field: 'rate', why: `${name}: what passes at once must be at least 1, and the pace above 0` })
  if (!(cost >= 0 && cost <= most)) throw fault('INVALID_FIELD', { field: 'cost', why: `${name}: a cost of ${cost} never fits, at most ${most} pass at once` })
  return 'burst' in rate ? bucket(known, { ...rate, now, cost }) : window(known, { ...rate, now, cost })
}

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
