// So many at a time, the others wait in the order in which they came.

type Line = {
  readonly places: number
  readonly waitingMax: number
  /** What is thrown when even the line is full. */
  readonly full: () => Error
}

/**
 * `enter` resolves to what gives the place back; it rejects with the signal's reason, or at once
 * when the line is full.
 */
export function createSemaphore({ places, waitingMax, full }: Line) {
  let free = places
  const waiting: (() => void)[] = []
  const place = (): (() => void) => {
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
    async enter(signal: AbortSignal): Promise<() => void> {
      signal.throwIfAborted()
      if (free > 0) {
        free--
        return place()
      }
      if (waiting.length >= waitingMax) throw full()
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
      return place()
    },
  }
}
