// So many at a time, the others wait in the order in which they came.

type Bounds = {
  readonly permits: number
  readonly waitingMax: number
  /** What is thrown when even the line is full. */
  readonly refuse: () => Error
}

/**
 * `enter` resolves to what gives the place back; it rejects with the signal's reason, or at once
 * when the line is full.
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
