// Tells a driver to stop, and ends the try of a silent model, so that another try begins.
import type { Clock } from '#ports/clock.ts'

/** Why a driver is told to stop. At `handover` and `lost` it appends nothing more. */
export type StopReason = 'cancelled' | 'handover' | 'lost'

export type Cancellation = ReturnType<typeof createCancellation>

export function createCancellation(clock: Clock) {
  let controller = new AbortController()
  let stopped: StopReason | undefined
  let acting = 0
  let heardAt = Number.POSITIVE_INFINITY
  return {
    /**
     * The signal of the current try. It aborts when the driver must stop, or when the model was
     * silent for too long.
     */
    signal: (): AbortSignal => controller.signal,
    stopped: () => stopped,
    /**
     * Tells the driver to stop. At a hand-over, a tool's body may end first: no other driver could
     * tell whether it did.
     */
    stop(reason: StopReason): void {
      stopped ??= reason
      if (reason !== 'handover' || acting === 0) controller.abort(stopped)
    },
    /** Ends the wait for tools' bodies at a hand-over. */
    abandon: () => controller.abort(stopped),
    async whileActing<T>(act: () => Promise<T>): Promise<T> {
      acting++
      try {
        return await act()
      } finally {
        acting--
      }
    },
    /** Restarts the count of silence: the model begins, or has sent something. */
    touch: () => {
      heardAt = clock.monotonic()
    },
    /** Stops the count of silence: no model is being called. */
    pause: () => {
      heardAt = Number.POSITIVE_INFINITY
    },
    /** Ends the try when the model was silent for longer than `silenceMsMax`. */
    expireIdle(silenceMsMax: number, silent: () => Error): void {
      if (clock.monotonic() - heardAt > silenceMsMax) controller.abort(silent())
    },
    /**
     * Returns the signal for what follows a try that was ended. A driver that must stop stays
     * stopped.
     */
    renew(): AbortSignal {
      if (stopped === undefined && controller.signal.aborted) controller = new AbortController()
      return controller.signal
    },
  }
}
