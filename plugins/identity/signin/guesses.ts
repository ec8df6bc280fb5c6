// Bounds guessing. A try counts before it is judged, so that of a thousand concurrent tries only
// some are judged. Right tries, and tries that nobody judged, are given back. So only wrong guesses
// use up a limit.
import { fault } from '#contracts/faults.ts'
import type { Rate, RateLimiter } from '#ports/limits.ts'

type Deps = { limits: RateLimiter; rates: Readonly<Record<string, Rate>> }
/** `name`: of one of the plugin's limits; `subject`: who is counted. */
export type Bound = { readonly name: string; readonly subject: string }

const refusal = (name: string, waitMs: number) => {
  const seconds = Math.ceil(waitMs / 1000)
  if (name.startsWith('login'))
    return fault('LOGIN_THROTTLED', { seconds }, { retryAfterMs: waitMs })
  return fault('RATE_LIMITED', { limit: name, seconds }, { retryAfterMs: waitMs })
}

export function createGuesses({ limits, rates }: Deps) {
  const giveBack = async (counted: readonly Bound[]): Promise<void> => {
    for (const { name, subject } of counted) await limits.refund(name, subject, rates[name]!)
  }
  return {
    /** What `judge` answers. LOGIN_THROTTLED or RATE_LIMITED where one of the bounds is used up. */
    async judged(bounds: readonly Bound[], judge: () => Promise<boolean>): Promise<boolean> {
      const counted: Bound[] = []
      let wrong = false
      try {
        for (const bound of bounds) {
          const waitMs = await limits.take(bound.name, bound.subject, rates[bound.name]!)
          if (waitMs > 0) throw refusal(bound.name, waitMs)
          counted.push(bound)
        }
        wrong = !(await judge())
        return !wrong
      } finally {
        if (!wrong) await giveBack(counted)
      }
    },
    /** Forgets the wrong guesses of a subject. */
    forget: ({ name, subject }: Bound) => limits.reset(name, subject),
  }
}
export type Guesses = ReturnType<typeof createGuesses>
