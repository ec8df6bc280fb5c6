// Reads from a source that may be stuck.

/**
 * Answers the promise's result. If the signal aborts first, throws its reason at once. A race
 * against one promise of the signal would keep every answer in memory as long as the signal.
 */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const stop = (): void => reject(signal.reason)
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

/**
 * The items of `source`. When one of the signals aborts, its reason is thrown at once, even while
 * the source is silent.
 */
export async function* abortable<T>(
  source: AsyncIterable<T>,
  signals: readonly (AbortSignal | undefined)[],
): AsyncGenerator<T> {
  const watched = signals.filter(signal => signal !== undefined)
  const iterator = source[Symbol.asyncIterator]()
  // Each step gets a promise of its own. A race against one long-lived promise would keep every
  // item in memory.
  let stop = (_reason: unknown): void => undefined
  const listeners = watched.map(signal => ({ signal, heard: () => stop(signal.reason) }))
  let ended = false
  try {
    for (const { signal, heard } of listeners)
      signal.addEventListener('abort', heard, { once: true })
    while (true) {
      for (const { signal } of listeners) signal.throwIfAborted()
      const next = await new Promise<IteratorResult<T>>((resolve, reject) => {
        stop = reject
        iterator.next().then(resolve, reject)
      })
      if (next.done === true) {
        ended = true
        return
      }
      yield next.value
    }
  } finally {
    for (const { signal, heard } of listeners) signal.removeEventListener('abort', heard)
    // Not awaited, because a generator that waits for its source answers only when the source does.
    if (!ended) iterator.return?.()?.then(undefined, () => 'the reader has gone')
  }
}
