// So many at a time, so many waiting, and no more: what keeps a flood of sign-ins from taking the whole machine.

/** `refuse` makes the error of whoever finds the queue full. */
export function lanes({ atOnce, waitingMax, refuse }: { atOnce: number; waitingMax: number; refuse: () => Error }) {
  const waiting: (() => void)[] = []
  let busy = 0
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (busy >= atOnce) {
      if (waiting.length >= waitingMax) throw refuse()
      // Whoever leaves hands over its place: `busy` does not change.
      await new Promise<void>((resolve) => waiting.push(resolve))
    } else busy++
    try {
      return await work()
    } finally {
      const next = waiting.shift()
      if (next === undefined) busy--
      else next()
    }
  }
}
export type Lanes = ReturnType<typeof lanes>
