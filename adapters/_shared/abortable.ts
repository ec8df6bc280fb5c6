// Reading from a source that may be stuck.

/** The items of `source`, until one of the signals aborts: then its reason is thrown at once, even while the source is silent. */
export async function* abortable<T>(source: AsyncIterable<T>, signals: readonly (AbortSignal | undefined)[]): AsyncGenerator<T> {
  const watched = signals.filter((signal) => signal !== undefined)
  const iterator = source[Symbol.asyncIterator]()
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  aborted.catch(() => 'seen where it is raced')
  const listeners = watched.map((signal) => ({ signal, stop: () => reject(signal.reason) }))
  let ended = false
  try {
    for (const { signal, stop } of listeners) {
      signal.throwIfAborted()
      signal.addEventListener('abort', stop, { once: true })
    }
    while (true) {
      const next = await Promise.race([iterator.next(), aborted])
      if (next.done === true) {
        ended = true
        return
      }
      yield next.value
    }
  } finally {
    for (const { signal, stop } of listeners) signal.removeEventListener('abort', stop)
    // Not awaited: a generator that waits for its own source answers only when that source does.
    if (!ended) iterator.return?.()?.then(undefined, () => 'the reader has gone')
  }
}
