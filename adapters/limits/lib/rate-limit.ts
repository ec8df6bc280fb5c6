// Decides whether a subject may act now, from its count. A bucket is the generic cell rate
// algorithm (ITU-T I.371): one number, the moment at which the bucket is full again.
import { fault } from '#contracts/faults.ts'
import type { Rate } from '#ports/limits.ts'

/**
 * Sums of fractions of a millisecond are inexact, most of all where time counts from 1970. Without
 * this tolerance the last call of a full burst would sometimes be refused.
 */
const roundingMs = 0.01

/** `until`: when the bucket is full again, or when the window ends. */
export type Count = { readonly until: number; readonly used: number }
export type Verdict = { readonly count: Count; readonly waitMs: number }

function bucket(
  known: Count | undefined,
  { now, perSecond, burst, cost }: { now: number; perSecond: number; burst: number; cost: number },
): Verdict {
  const from = Math.max(now, known?.until ?? now)
  const until = from + (cost * 1000) / perSecond
  const waitMs = until - now - (burst * 1000) / perSecond
  return waitMs <= roundingMs
    ? { count: { until, used: 0 }, waitMs: 0 }
    : { count: { until: from, used: 0 }, waitMs: Math.ceil(waitMs) }
}

function window(
  known: Count | undefined,
  { now, count, perMs, cost }: { now: number; count: number; perMs: number; cost: number },
): Verdict {
  const open = known === undefined || known.until <= now ? { until: now + perMs, used: 0 } : known
  const used = open.used + cost
  return used <= count
    ? { count: { until: open.until, used }, waitMs: 0 }
    : { count: open, waitMs: Math.max(1, Math.ceil(open.until - now)) }
}

export function evaluate(
  name: string,
  rate: Rate,
  { known, now, cost }: { known: Count | undefined; now: number; cost: number },
): Verdict {
  const [most, pace] = 'burst' in rate ? [rate.burst, rate.perSecond] : [rate.count, rate.perMs]
  if (!(most >= 1 && pace > 0))
    throw fault('INVALID_FIELD', {
      field: 'rate',
      why: `${name}: what passes at once must be at least 1, and the pace above 0`,
    })
  if (!(cost >= 0 && cost <= most))
    throw fault('INVALID_FIELD', {
      field: 'cost',
      why: `${name}: a cost of ${cost} never fits, at most ${most} pass at once`,
    })
  return 'burst' in rate
    ? bucket(known, { ...rate, now, cost })
    : window(known, { ...rate, now, cost })
}

/** The subject's count after `cost` is given back; undefined when no count is left. */
export function refunded(
  rate: Rate,
  {
    known,
    now,
    cost,
  }: {
    known: Count | undefined
    now: number
    cost: number
  },
): Count | undefined {
  if (known === undefined || known.until <= now) return undefined
  if (!('burst' in rate)) return { until: known.until, used: Math.max(0, known.used - cost) }
  const until = known.until - (cost * 1000) / rate.perSecond
  return until <= now ? undefined : { until, used: 0 }
}
