// The event streams that are open, and whether their callers may still read them: a stream outlives
// the
// moment in which its caller was checked, and must not outlive the rights that were found then.
import type { WireEvent } from '#contracts/contract.ts'
import type { Clock } from '#ports/clock.ts'

/**
 * How often an open stream's caller is checked again, and how often those whose time has come are
 * looked for.
 */
const recheckMs = 60_000
const lookMs = 1000

type Batches = AsyncIterable<readonly WireEvent[]>
type Step = IteratorResult<readonly WireEvent[]> | 'due'
type Access = {
  /** Undefined: a public stream. */
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

  /** One timer for all streams, as long as there are some. */
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
    // A promise a step: racing with one that lasts as long as the stream would keep every event of
    // it.
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
      // What it waits for may take until the client has gone.
      void Promise.resolve(iterator.return?.()).catch(() => undefined)
    }
  }
  return {
    /** Checks the callers of this user's open streams now. */
    recheck(userId: string): void {
      for (const { wake } of [...(byUser.get(userId) ?? [])]) wake()
    },
    /**
     * The same events until they end, or until their caller may no longer read them: then it
     * rejects with the fault.
     */
    guard: (events: Batches, { userId, ...access }: Access): Batches =>
      userId === undefined ? events : guarded(events, { ...access, userId }),
  }
}
export type OpenStreams = ReturnType<typeof createOpenStreams>
