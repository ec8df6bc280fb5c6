// Checks the callers of open event streams again and again. A stream outlives the request that
// opened it, and must end when its caller loses the right to read it.
import type { WireEvent } from '#contracts/contract.ts'
import type { Clock } from '#ports/clock.ts'

/**
 * Milliseconds between two checks of a stream's caller, and between two looks for streams that are
 * due.
 */
const recheckMs = 60_000
const lookMs = 1000

type Batches = AsyncIterable<readonly WireEvent[]>
type Step = IteratorResult<readonly WireEvent[]> | 'due'
type Access = {
  /** The caller's user id; undefined for a public stream. */
  readonly userId: string | undefined
  /** Rejects with the fault that ends the stream. */
  readonly check: () => Promise<unknown>
  /** Aborts when the client goes away. */
  readonly signal: AbortSignal
}
type Open = { readonly wake: () => void; dueAt: number }

export function createOpenStreams({ clock }: { clock: Pick<Clock, 'sleep' | 'monotonic'> }) {
  const byUser = new Map<string, Set<Open>>()
  const all = new Set<Open>()
  let looking = false

  /** Wakes the streams that are due. One timer serves all streams, while any stream is open. */
  const look = async (): Promise<void> => {
    if (looking) return
    looking = true
    while (all.size > 0) {
      await clock.sleep(lookMs)
      const now = clock.monotonic()
      for (const one of all) if (one.dueAt <= now) one.wake()
    }
    looking = false
  }
  const register = (userId: string, one: Open): (() => void) => {
    const opened = byUser.get(userId) ?? new Set()
    byUser.set(userId, opened.add(one))
    all.add(one)
    void look()
    return () => {
      all.delete(one)
      opened.delete(one)
      if (opened.size === 0 && byUser.get(userId) === opened) byUser.delete(userId)
    }
  }
  async function* guarded(
    events: Batches,
    { userId, check, signal }: Access & { userId: string },
  ): Batches {
    const iterator = events[Symbol.asyncIterator]()
    let isDue = false
    let settle: (step: Step) => void = () => undefined
    const wake = (): void => {
      isDue = true
      settle('due')
    }
    const gone = (): void => settle({ done: true, value: undefined })
    // Each step gets a promise of its own. A race against one long-lived promise would keep every
    // event in memory.
    const step = (next: Promise<IteratorResult<readonly WireEvent[]>>): Promise<Step> =>
      new Promise((resolve, reject) => {
        settle = resolve
        if (signal.aborted) gone()
        else if (isDue) resolve('due')
        next.then(resolve, reject)
      })
    const one: Open = { wake, dueAt: clock.monotonic() + recheckMs }
    const forget = register(userId, one)
    signal.addEventListener('abort', gone, { once: true })
    try {
      let next = iterator.next()
      for (;;) {
        const taken = await step(next)
        if (taken === 'due') {
          isDue = false
          one.dueAt = clock.monotonic() + recheckMs
          await check()
          continue
        }
        if (taken.done) return
        yield taken.value
        next = iterator.next()
      }
    } finally {
      forget()
      signal.removeEventListener('abort', gone)
      // The iterator may be waiting for an event, so nobody waits for its return.
      void Promise.resolve(iterator.return?.()).catch(() => undefined)
    }
  }
  return {
    /** Checks the callers of this user's open streams now. */
    recheck(userId: string): void {
      for (const { wake } of [...(byUser.get(userId) ?? [])]) wake()
    },
    /**
     * Passes the events on until the stream ends. Rejects with the fault of `check` when the caller
     * may no longer read.
     */
    guard: (events: Batches, { userId, ...access }: Access): Batches =>
      userId === undefined ? events : guarded(events, { ...access, userId }),
  }
}
export type OpenStreams = ReturnType<typeof createOpenStreams>
