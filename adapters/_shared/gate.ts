// The one way in which an adapter says that it is closed.
import { fault, type Fault } from '#contracts/faults.ts'

export const closedFault = (what: string): Fault => fault('UNAVAILABLE', { what, why: 'it is closed' })

/** `check` refuses with UNAVAILABLE once `shut` was called; `shut` is true the first time only, so that closing twice is allowed. */
export function gate(what: string) {
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
