// Fair shares of a bounded resource: bounds in all, for one user, and for one address.
import { fault } from '#contracts/faults.ts'
import { addressGroup } from '#ports/address.ts'

export type Bounds = {
  readonly total: number
  readonly perUser: number
  readonly perAddress: number
}
export type Subject = { readonly user: string | undefined; readonly address: string }

/** The pause that a refused caller is told, in milliseconds. */
const againMs = 5000

function createCounts(max: number) {
  const counts = new Map<string, number>()
  return {
    fits: (key: string, amount: number) => (counts.get(key) ?? 0) + amount <= max,
    add(key: string, amount: number) {
      const count = (counts.get(key) ?? 0) + amount
      if (count > 0) counts.set(key, count)
      else counts.delete(key)
    },
  }
}

/**
 * `what` names the resource in a refusal. TOO_MANY_OPEN: the subject holds too many. UNAVAILABLE:
 * all are taken.
 */
export function createShares({ total, perUser, perAddress }: Bounds, what: string) {
  const users = createCounts(perUser)
  const addresses = createCounts(perAddress)
  let taken = 0
  return {
    taken: () => taken,
    /** Takes a share until the returned function is called. */
    take({ user = '', address }: Subject, amount = 1): () => void {
      const group = addressGroup(address)
      const refuse = (by: string) =>
        fault('TOO_MANY_OPEN', { what, by, seconds: againMs / 1000 }, { retryAfterMs: againMs })
      if (user !== '' && !users.fits(user, amount)) throw refuse('this user')
      if (!addresses.fits(group, amount)) throw refuse('this address')
      if (taken + amount > total)
        throw fault(
          'UNAVAILABLE',
          { what: `Another ${what}`, why: 'this server holds as many as it may' },
          { retryAfterMs: againMs },
        )
      const add = (sign: 1 | -1) => {
        taken += sign * amount
        if (user !== '') users.add(user, sign * amount)
        addresses.add(group, sign * amount)
      }
      let held = true
      add(1)
      return () => {
        if (held) add(-1)
        held = false
      }
    },
  }
}
export type Shares = ReturnType<typeof createShares>
