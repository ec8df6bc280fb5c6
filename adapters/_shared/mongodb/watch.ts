// Watches inserts of all processes into a collection by one change stream. Without a replica set
// there is none; then waiters are told to poll.
import { MongoServerError, type Collection, type Document } from 'mongodb'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import { toFault } from './database.ts'

/**
 * Milliseconds: between two looks without a change stream; the longest pause before a broken one is
 * reopened.
 */
const lookMs = 500
const pauseMsMax = 10_000
/**
 * How many waiters look at a time. A look costs two calls, and ten thousand followers must not make
 * forty thousand calls a second.
 */
export const lookedAtOnce = 200
/** Looks after which a change stream is tried again. */
const looksMax = 120
/**
 * https://www.mongodb.com/docs/manual/reference/error-codes/: change streams are only supported on
 * replica sets.
 */
const noReplicaSet = 40_573

type Watched<D> = {
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
  /** Documents come in the server's order. */
  take(document: D): void
  /** Events may have been missed, so at most `most` waiters look again, in turn. */
  lag(most: number): void
}

export function watchInserts<D extends Document>(
  collection: Collection<D>,
  { clock, log, signal, take, lag }: Watched<D>,
): void {
  const once = async (opened: () => void) => {
    const stream = collection.watch([{ $match: { operationType: 'insert' } }])
    const stop = () => void stream.close().catch(() => undefined)
    signal.addEventListener('abort', stop, { once: true })
    const seen = (change: unknown) => take((change as { fullDocument: D }).fullDocument)
    try {
      const first = await stream.tryNext()
      opened()
      // Events may have come since the follower's first read.
      lag(Number.POSITIVE_INFINITY)
      if (first) seen(first)
      for await (const change of stream) seen(change)
    } finally {
      signal.removeEventListener('abort', stop)
      stop()
    }
  }
  const lookAround = async () => {
    for (let looks = 0; looks < looksMax; looks++) {
      await clock.sleep(lookMs, signal)
      lag(lookedAtOnce)
    }
  }
  const forever = async () => {
    for (let failures = 0, isAlone = false; !signal.aborted; ) {
      try {
        await once(() => {
          failures = 0
        })
      } catch (error) {
        if (signal.aborted) return
        const wasAlone = isAlone
        isAlone = error instanceof MongoServerError && error.code === noReplicaSet
        if (!isAlone) log('warn', 'mongodb.watch', { error: (toFault(error) as Error).message })
        else if (!wasAlone)
          log('warn', 'mongodb.no_replica_set', {
            collection: collection.collectionName,
            look_ms: lookMs,
          })
        await (isAlone
          ? lookAround()
          : clock.sleep(
              Math.min(pauseMsMax, 100 * 2 ** failures++) * (0.5 + clock.random() / 2),
              signal,
            ))
      }
    }
  }
  void forever().catch(() => undefined)
}
