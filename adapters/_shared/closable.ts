// The one way in which an adapter says that it is closed.
import { fault, type Fault } from '#contracts/faults.ts'

export const closedFault = (what: string): Fault =>
  fault('UNAVAILABLE', { what, why: 'it is closed' })

/**
 * `check` refuses with UNAVAILABLE once `shut` was called; `shut` is true the first time only, so
 * that closing twice is allowed.
 */
export function closable(what: string) {
  let closed = false
  return {
    check(): void {
      if (closed) throw closedFault(what)
    },
    shut(): boolean {
      const first = !closed
      closed = true
      return first
    },
  }
}

/** A gate for work that takes its time. */
export type ClosableWork = {
  check(): void
  /** Aborts when it shuts. */
  readonly signal: AbortSignal
  /** Counts work that is under way. */
  track<T>(work: Promise<T>): Promise<T>
  /** Shuts, waits for all that is under way, and then does `last`, once. */
  close(last?: () => void | Promise<void>): Promise<void>
}
export function closableWork(what: string): ClosableWork {
  const { check, shut } = closable(what)
  const closing = new AbortController()
  const underWay = new Set<Promise<unknown>>()
  return {
    check,
    signal: closing.signal,
    track(work) {
      const settled: Promise<unknown> = work
        .catch(() => undefined)
        .finally(() => underWay.delete(settled))
      underWay.add(settled)
      return work
    },
    async close(last = () => undefined) {
      const first = shut()
      if (first) closing.abort(closedFault(what))
      await Promise.all(underWay)
      if (first) await last()
    },
  }
}
