// Repeats a call of which no answer was handed out yet. The provider may choose the pause.
import { hasCode, type Fault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'

const triesMax = 3
const backoffMsUsual = 500
const backoffMsMax = 8000
/** A longer pause is left to the caller: the call fails at once. */
const waitMsMax = 20_000

type Trying = {
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Turns an error into a fault. */
  readonly failureOf: (error: unknown) => Fault
  readonly onFailure: (failure: Fault, tried: number) => void
}

/** Yields the items of the first try that has any. Throws the signal's reason, or the fault. */
export async function* retry<T>(
  once: () => AsyncIterable<T>,
  { clock, signal, failureOf, onFailure }: Trying,
): AsyncGenerator<T> {
  for (let tried = 1; ; tried++) {
    let begun = false
    try {
      for await (const item of once()) {
        begun = true
        yield item
      }
      return
    } catch (error) {
      // The caller gets its own reason for the abort, not the library's error.
      signal.throwIfAborted()
      const failure = failureOf(error)
      onFailure(failure, tried)
      if (begun || tried === triesMax || !hasCode(failure, 'MODEL_FAILED')) throw failure
      const backoffMs =
        Math.min(backoffMsMax, backoffMsUsual * 2 ** (tried - 1)) * (0.5 + clock.random() / 2)
      const pauseMs = Math.max(backoffMs, failure.retryAfterMs ?? 0)
      if (pauseMs > waitMsMax) throw failure
      await clock.sleep(pauseMs, signal)
    }
  }
}
