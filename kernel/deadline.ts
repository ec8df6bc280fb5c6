// Waits for work no longer than a time.
import type { Clock } from '#ports/clock.ts'

/**
 * Settles as the work does, or after `ms` as `late` says. When `ends` aborts first, it rejects with
 * that signal's reason. Nothing hears how work that is late settles.
 */
export async function atMost<T, L>(
  clock: Pick<Clock, 'sleep'>,
  ms: number,
  work: Promise<T>,
  late: () => L,
  ends?: AbortSignal,
): Promise<T | L> {
  const over = new AbortController()
  const signal = ends ? AbortSignal.any([over.signal, ends]) : over.signal
  try {
    return await Promise.race([work, clock.sleep(ms, signal).then(late)])
  } finally {
    over.abort()
  }
}
