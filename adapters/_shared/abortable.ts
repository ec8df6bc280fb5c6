// Reading from a source that may be stuck.

/** What the promise answers, unless the signal aborts before: then its reason is thrown at once.
 *  A race against one promise of the signal would keep every answer alive as long as the signal. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const stop = (): void => reject(signal.reason)
    if (signal.aborted) stop()
    else signal.addEventListener('abort', stop, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

/**
 * The items of `source`, until one of the signals aborts: then its reason is thrown at once, even
 * while the source is silent.
 */
export async function* abortable<T>(
  source: AsyncIterable<T>,
  signals: readonly (AbortSignal | undefined)[],
): AsyncGenerator<T> {
  const watched = signals.filter(signal => signal !== undefined)
  const iterator = source[Symbol.asyncIterator]()
  // One promise for each step: a race against one that lasts as long as the source would keep every
  // item alive until its end.
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
    // Not awaited: a generator that waits for its own source answers only when that source does.
    if (!ended) iterator.return?.()?.then(undefined, () => 'the reader has gone')
  }
}
