// Hands what was appended to whoever follows its stream in this process. A follower that does not
// keep up holds little and reads back from the log.
import type { Fault } from '#contracts/faults.ts'
import type { LoggedEvent } from '#ports/eventlog.ts'

/** Events that wait for one follower, and that one read of the log brings. */
const bufferedMax = 256

export type Log = {
  /**
   * At most `limit` events after `after`, applied ones included. Once `signal` aborts, nobody waits
   * for them any more.
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
  /** Only what is on disk, in order; the batch is shared by all. */
  deliver(stream: string, batch: Batch): void
  follow(stream: string, after: number, signal: AbortSignal): AsyncIterable<Batch>
  /**
   * Something may have come that was not delivered: every follower reads back, or, with `most`, so
   * many of them, those first that have not for longest.
   */
  lag(most?: number): void
  /** Nothing will come any more: followers fail with `why`. */
  end(why: Fault): void
}

export function createFanout(log: Log): Fanout {
  const streams = new Map<string, Set<Follower>>()
  /** In the order in which they are sent to read back. */
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
      // Nobody needs what the next read of the log brings anyway.
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

  /** Whatever is appended after this read is delivered, so from here on the buffer takes part. */
  async function readBack(): Promise<Batch | undefined> {
    drop(false)
    const events = await log.read(stream, at, bufferedMax, signal)
    if (stopped || events.length === 0) return undefined
    try {
      await log.durable()
    } catch {
      // Some of it was lost: the log tells what stayed, or why it cannot.
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
    // Seqs have gaps where a stretch was rewritten: what was read is told by its seq.
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
    /** One after the other, as a generator would. */
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
