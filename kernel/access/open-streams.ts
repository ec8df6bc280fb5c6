// The event streams that are open, and whether their callers may still read them: a stream outlives the
// moment in which its caller was checked, and must not outlive the rights that were found then.
import type { WireEvent } from '#contracts/contract.ts'
import type { Clock } from '#ports/clock.ts'

/** How often an open stream's caller is checked again. */
const recheckMs = 60_000

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

export function createOpenStreams({ clock }: { clock: Pick<Clock, 'sleep'> }) {
  const byUser = new Map<string, Set<() => void>>()

  const register = (userId: string, wake: () => void): (() => void) => {
    const wakes = byUser.get(userId) ?? new Set()
    byUser.set(userId, wakes.add(wake))
    return () => {
      wakes.delete(wake)
      if (wakes.size === 0) byUser.delete(userId)
    }
  }
  async function* guarded(events: Batches, { userId, check, signal }: Access & { userId: string }): Batches {
    const iterator = events[Symbol.asyncIterator](), over = new AbortController()
    const ends = AbortSignal.any([signal, over.signal])
    let isDue = false, settle: (step: Step) => void = () => undefined
    const wake = (): void => {
      isDue = true
      settle('due')
    }
    const forget = register(userId, wake)
    const gone = (): void => settle({ done: true, value: undefined })
    const arm = (): void => void clock.sleep(recheckMs, ends).then(wake, gone)
    // A promise a step: racing with one that lasts as long as the stream would keep every event of it.
    const step = (next: Promise<IteratorResult<readonly WireEvent[]>>): Promise<Step> =>
      new Promise((resolve, reject) => {
        settle = resolve
        if (isDue) resolve('due')
        next.then(resolve, reject)
      })
    arm()
    try {
      let next = iterator.next()
      for (;;) {
        const taken = await step(next)
        if (taken === 'due') {
          isDue = false
          await check()
          arm()
          continue
        }
        if (taken.done) return
        yield taken.value
        next = iterator.next()
      }
    } finally {
      // A reason of its own: the standard one is an error, made with its stack for each stream.
      over.abort('over')
      forget()
      // What it waits for may take until the client has gone.
      void Promise.resolve(iterator.return?.()).catch(() => undefined)
    }
  }
  return {
    /** Checks the callers of this user's open streams now. */
    recheck(userId: string): void {
      for (const wake of [...byUser.get(userId) ?? []]) wake()
    },
    /** The same events until they end, or until their caller may no longer read them: then it rejects with the fault. */
    guard: (events: Batches, { userId, ...access }: Access): Batches =>
      userId === undefined ? events : guarded(events, { ...access, userId }),
  }
}
export type OpenStreams = ReturnType<typeof createOpenStreams>
