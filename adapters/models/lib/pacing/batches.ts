// From a library's events, one at a time, to batches: everything that one read of the wire brought.

type Steps<E, D> = {
  /** Resolves when the library waits for more of the wire. */
  readonly hungry: () => Promise<void>
  readonly read: (event: E) => void
  /** What has been read and was not taken yet. */
  readonly take: () => D[]
}

/**
 * Never an empty batch. What was read before an error is handed out before it is thrown; what is
 * left at the end stays to be taken.
 */
export async function* batches<E, D>(
  events: AsyncIterable<E>,
  { hungry, read, take }: Steps<E, D>,
): AsyncGenerator<D[]> {
  const iterator = events[Symbol.asyncIterator]()
  let ended = false
  try {
    while (!ended) {
      const next = iterator.next()
      const waits = await Promise.race([
        next.then(
          () => false,
          () => false,
        ),
        hungry().then(() => true),
      ])
      if (waits) {
        const batch = take()
        if (batch.length > 0) yield batch
      }
      try {
        const { done, value } = await next
        if (done === true) ended = true
        else read(value)
      } catch (error) {
        ended = true
        const batch = take()
        if (batch.length > 0) yield batch
        throw error
      }
    }
  } finally {
    // Not awaited: it answers only when the wire does, which its owner ends after this.
    if (!ended) iterator.return?.()?.then(undefined, () => 'the reader has gone')
  }
}
