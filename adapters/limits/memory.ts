// Rate limits within one process.
import { defineAdapter } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { RateLimiter } from '#ports/limits.ts'
import { closable } from '../_shared/closable.ts'
import { wholeOption } from '../_shared/options.ts'
import { evaluate, refunded, type Count } from './lib/rate-limit.ts'

const subjectsMaxUsual = 100_000
/** Counts that new subjects share when all own counts are taken. */
const sharedCounts = 4096
/** Counts that are checked for expiry whenever one is added; this keeps up with new ones. */
const lookedAtOnce = 4

/** FNV-1a, 32 bits (draft-eastlake-fnv). It spreads subjects; it keeps no secret. */
function spread(text: string): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193)
  return (hash >>> 0) % sharedCounts
}

/**
 * A count in force is never dropped, so nobody can flood it out with other subjects. Past
 * `subjectsMax`, new subjects share counts, which makes their limits stricter, never looser.
 */
function createCounts(subjectsMax: number) {
  const counts = new Map<string, Count>()
  let oldest: Iterator<[string, Count]> = counts.entries()
  const forgetSome = (now: number): void => {
    for (let looked = 0; looked < lookedAtOnce; looked++) {
      const { done, value } = oldest.next()
      if (done) oldest = counts.entries()
      else if (value[1].until <= now) counts.delete(value[0])
    }
  }
  return {
    /** The key under which the subject is counted. */
    keyOf(name: string, subject: string, now: number): string {
      const own = `${name}\n${subject}`
      if (counts.has(own)) return own
      const shared = `${name}\nshared ${spread(own)}`
      // A shared count stays in force, even when there is room again.
      const inForce = (counts.get(shared)?.until ?? now) > now
      return inForce || counts.size >= subjectsMax ? shared : own
    },
    get: (key: string) => counts.get(key),
    set(key: string, count: Count | undefined, now: number): void {
      if (count === undefined || count.until <= now) counts.delete(key)
      else counts.set(key, count)
      forgetSome(now)
    },
    clear: () => counts.clear(),
    get size() {
      return counts.size
    },
  }
}

type Options = { clock: Pick<Clock, 'monotonic'>; subjectsMax?: number }
export function memoryLimits({ clock, subjectsMax = subjectsMaxUsual }: Options): RateLimiter {
  const counts = createCounts(subjectsMax)
  const { check, shut } = closable('The rate limiter')
  return {
    take(name, subject, rate, cost = 1) {
      check()
      const now = clock.monotonic()
      const key = counts.keyOf(name, subject, now)
      const { count, waitMs } = evaluate(name, rate, { known: counts.get(key), now, cost })
      counts.set(key, count, now)
      return waitMs
    },
    refund(name, subject, rate, cost = 1) {
      check()
      const now = clock.monotonic()
      const key = counts.keyOf(name, subject, now)
      counts.set(key, refunded(rate, { known: counts.get(key), now, cost }), now)
    },
    reset(name, subject) {
      check()
      // Other subjects share this count, so it stays.
      const now = clock.monotonic()
      const key = counts.keyOf(name, subject, now)
      if (key === `${name}\n${subject}`) counts.set(key, undefined, now)
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
  scheme: 'memory',
  ephemeral: true,
  options: {
    subjects:
      'How many subjects have a count of their own; beyond it, new ones share; default ' +
      `${subjectsMaxUsual}.`,
  },
  open: async ({ url, clock }) =>
    memoryLimits({
      clock,
      subjectsMax: wholeOption(url, 'subjects', subjectsMaxUsual, { min: 1 }),
    }),
})
