// Which entries a batch of operations becomes.
import type { Clock } from '#ports/clock.ts'
import type { Head, Memory } from './memory.ts'
import { effect, type Ask } from './operations.ts'
import type { Row } from './rows.ts'

export type Planned = { readonly ask: Ask; readonly row: Row }
type Plan = {
  readonly planned: Planned[]
  /** Not covered by what is known. */
  readonly doubtful: Ask[]
  /** The key comes a second time in this batch. */
  readonly later: Ask[]
}

/**
 * Computes one entry after the other upon the head. No await: what is known must not change between
 * here and the insert.
 */
export function plan(
  orgId: string,
  head: Head,
  asks: readonly Ask[],
  memory: Memory,
  clock: Clock,
): Plan {
  const made: Plan = { planned: [], doubtful: [], later: [] }
  const holds = new Map<string, number>()
  const keys = new Set<string>()
  let { seq, balance, held } = head
  for (const ask of asks) {
    const hold =
      ask.ends === undefined ? 0 : (holds.get(ask.ends) ?? memory.holdOf(orgId, ask.ends))
    const uncovered = hold === undefined || (ask.kind === 'hold' && ask.amount > balance - held)
    if (keys.has(ask.key)) made.later.push(ask)
    else if (uncovered || !Number.isSafeInteger(balance + ask.amount)) made.doubtful.push(ask)
    else {
      const change = effect(ask, hold)
      balance += change.amount
      held += change.held
      keys.add(ask.key)
      if (ask.kind === 'hold') holds.set(ask.key, ask.amount)
      made.planned.push({
        ask,
        row: {
          id: clock.id(),
          orgId,
          seq: ++seq,
          key: ask.key,
          kind: ask.kind,
          ...change,
          balanceAfter: balance,
          heldAfter: held,
          reason: ask.reason,
          at: clock.now(),
        },
      })
    }
  }
  return made
}
