// A semaphore: it bounds the calls at a time, and others wait in order.

type Bounds = {
  readonly permits: number
  readonly waitingMax: number
  /** The error when too many wait already. */
  readonly refuse: () => Error
}

/**
 * `acquire` resolves to the function that releases the permit. It rejects with the signal's reason,
 * or at once when too many wait.
 */
export function createSemaphore({ permits, waitingMax, refuse }: Bounds) {
  let free = permits
  const waiting: (() => void)[] = []
  const permit = (): (() => void) => {
    let held = true
    return () => {
      if (!held) return
      held = false
      const next = waiting.shift()
      if (next === undefined) free++
      else next()
    }
  }
  return {
    async acquire(signal: AbortSignal): Promise<() => void> {
      signal.throwIfAborted()
      if (free > 0) {
        free--
        return permit()
      }
      if (waiting.length >= waitingMax) throw refuse()
      await new Promise<void>((resolve, reject) => {
        const called = (): void => {
          signal.removeEventListener('abort', left)
          resolve()
        }
        const left = (): void => {
          waiting.splice(waiting.indexOf(called), 1)
          reject(signal.reason)
        }
        waiting.push(called)
        signal.addEventListener('abort', left, { once: true })
      })
      return permit()
    },
  }
}
