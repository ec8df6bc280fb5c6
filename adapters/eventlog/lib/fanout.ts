// Fanout: hands appended events to the followers of their stream in this process. A slow follower
// buffers little and reads back from the log.
import type { Fault } from '#contracts/faults.ts'
import type { LoggedEvent } from '#ports/eventlog.ts'

/** Events that are buffered for one follower, and events of one read of the log. */
const bufferedMax = 256

export type Log = {
  /**
   * At most `limit` events behind `after`, applied ones included. When `signal` aborts, the reader
   * has stopped waiting.
   */
  read(stream: string, after: number, limit: number, signal: AbortSignal): Promise<LoggedEvent[]>
  durable(): Promise<void>
}
type Batch = readonly LoggedEvent[]
type Follower = { take(batch: Batch): void; lag(): void; end(why?: Fault): void }

export type Fanout = {
  follows(stream: string): boolean
  /** Followers of all streams. */
  count(): number
  /** Delivers events that are on disk, in order. All followers share the batch. */
  deliver(stream: string, batch: Batch): void
  follow(stream: string, after: number, signal: AbortSignal): AsyncIterable<Batch>
  /**
   * Some events may not have been delivered, so followers read back. `most` bounds how many do,
   * first those that have not read back for longest.
   */
  lag(most?: number): void
  /** Ends all followers with `why`. */
  end(why: Fault): void
}

export function createFanout(log: Log): Fanout {
  const streams = new Map<string, Set<Follower>>()
  /** Followers, in the order in which they read back. */
  const all = new Set<Follower>()

  function add(stream: string, follower: Follower): () => void {
    const followers = streams.get(stream) ?? new Set()
    streams.set(stream, followers.add(follower))
    all.add(follower)
    return () => {
      if (!all.delete(follower)) return
      followers.delete(follower)
      if (followers.size === 0) streams.delete(stream)
    }
  }

  return {
    follows: stream => streams.has(stream),
    count: () => all.size,
    deliver(stream, batch) {
      for (const follower of streams.get(stream) ?? []) follower.take(batch)
    },
    follow: (stream, after, signal) => ({
      [Symbol.asyncIterator]: () =>
        createFollower(log, stream, after, signal, follower => add(stream, follower)),
    }),
    lag(most = all.size) {
      for (const follower of [...all].slice(0, most)) {
        all.delete(follower)
        all.add(follower)
        follower.lag()
      }
    },
    end(why) {
      for (const follower of [...all]) follower.end(why)
    },
  }
}

function createFollower(
  log: Log,
  stream: string,
  after: number,
  signal: AbortSignal,
  subscribe: (follower: Follower) => () => void,
): AsyncIterator<Batch> {
  let [at, behind, stopped, buffered] = [after, true, false, 0]
  let buffer: Batch[] = []
  let failure: Fault | undefined
  let wake: (() => void) | undefined
  let unsubscribe: (() => void) | undefined
  let turn: Promise<unknown> = Promise.resolve()

  function drop(isBehind: boolean): void {
    behind = isBehind
    buffer = []
    buffered = 0
  }
  function stop(why?: Fault): void {
    if (stopped) return
    stopped = true
    failure = why
    drop(false)
    unsubscribe?.()
    signal.removeEventListener('abort', onAbort)
    wake?.()
  }
  const onAbort = () => stop()
  const follower: Follower = {
    take(batch) {
      // The next read of the log brings these events anyway.
      if (behind) return
      buffer.push(batch)
      buffered += batch.length
      if (buffered > bufferedMax && buffer.length > 1) drop(true)
      wake?.()
    },
    lag() {
      drop(true)
      wake?.()
    },
    end: stop,
  }
  function start(): void {
    if (unsubscribe || stopped) return
    if (signal.aborted) return stop()
    unsubscribe = subscribe(follower)
    signal.addEventListener('abort', onAbort)
  }

  /**
   * Events that are appended after this read are delivered, so from now on the buffer takes them.
   */
  async function readBack(): Promise<Batch | undefined> {
    drop(false)
    const events = await log.read(stream, at, bufferedMax, signal)
    if (stopped || events.length === 0) return undefined
    try {
      await log.durable()
    } catch {
      // Some buffered events were dropped, so the follower reads the log.
      drop(true)
      return undefined
    }
    if (events.length >= bufferedMax) drop(true)
    return events
  }
  function fromBuffer(): Batch | undefined {
    const batch = buffer.shift()
    if (!batch) return undefined
    buffered -= batch.length
    if (batch.at(-1)!.seq <= at) return undefined
    if (batch[0]!.seq > at + 1) return void drop(true)
    // Rewritten ranges leave gaps, so events that were read are recognised by their seq.
    return batch[0]!.seq > at ? batch : batch.filter(({ seq }) => seq > at)
  }
  async function step(): Promise<IteratorResult<Batch>> {
    start()
    try {
      while (!stopped) {
        const batch = behind ? await readBack() : fromBuffer()
        if (stopped) break
        if (batch) {
          at = batch.at(-1)!.seq
          return { done: false, value: batch }
        }
        if (!behind && buffer.length === 0)
          await new Promise<void>(resolve => void (wake = resolve))
        wake = undefined
      }
    } catch (error) {
      if (!stopped) stop(error as Fault)
    }
    const why = failure
    failure = undefined
    if (why) throw why
    return { done: true, value: undefined }
  }

  return {
    /** Calls of `next` run one after the other, as in a generator. */
    next: () => {
      const result = turn.then(step)
      turn = result.catch(() => {})
      return result
    },
    return: () => {
      stop()
      return Promise.resolve({ done: true, value: undefined })
    },
  }
}
