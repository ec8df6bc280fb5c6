// Groups a library's single events into batches. A batch holds all events of one read of the wire.

type Steps<E, D> = {
  /** Resolves when the library waits for more of the wire. */
  readonly hungry: () => Promise<void>
  readonly read: (event: E) => void
  /** Returns what was read since the last call. */
  readonly take: () => D[]
}

/**
 * Yields no empty batch. Events before an error come first, and then the error is thrown. What is
 * left at the end can still be taken.
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
    // Not awaited: it resolves only when the wire ends, and the caller ends the wire after this.
    if (!ended) iterator.return?.()?.then(undefined, () => 'the reader has gone')
  }
}
