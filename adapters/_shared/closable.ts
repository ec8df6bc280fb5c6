// Makes a closed adapter refuse calls, in one way for all adapters.
import { fault, type Fault } from '#contracts/faults.ts'

export const closedFault = (what: string): Fault =>
  fault('UNAVAILABLE', { what, why: 'it is closed' })

/**
 * `check` throws UNAVAILABLE after `shut`. `shut` answers true the first time only, so that closing
 * twice is allowed.
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

/** Waits for work under way when it closes. */
export type ClosableWork = {
  check(): void
  /** Aborts at `close`. */
  readonly signal: AbortSignal
  /** Counts the work until it ends, so that `close` can wait for it. */
  track<T>(work: Promise<T>): Promise<T>
  /** Refuses new work, waits for the work under way, and then runs `last` once. */
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
