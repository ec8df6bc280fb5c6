// How a driver is told to stop, and a silent model to give way to another try.
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
     * Of the try that is under way: aborts when the driver must stop, or when the model was silent
     * for too long.
     */
    signal: (): AbortSignal => controller.signal,
    stopped: () => stopped,
    /**
     * At a hand-over, what acts on the world may come to its end first: nobody else could tell
     * whether it did.
     */
    stop(reason: StopReason): void {
      stopped ??= reason
      if (reason !== 'handover' || acting === 0) controller.abort(stopped)
    },
    /** The patience with what acts on the world is over. */
    abandon: () => controller.abort(stopped),
    async whileActing<T>(act: () => Promise<T>): Promise<T> {
      acting++
      try {
        return await act()
      } finally {
        acting--
      }
    },
    /** The model begins, or has sent something. */
    touch: () => {
      heardAt = clock.monotonic()
    },
    /** No model is being listened to: silence means nothing. */
    pause: () => {
      heardAt = Number.POSITIVE_INFINITY
    },
    /** Ends the try when nothing was heard for so long. */
    expireIdle(silenceMsMax: number, silent: () => Error): void {
      if (clock.monotonic() - heardAt > silenceMsMax) controller.abort(silent())
    },
    /**
     * The signal for what comes after a try that was ended; a driver that must stop stays stopped.
     */
    renew(): AbortSignal {
      if (stopped === undefined && controller.signal.aborted) controller = new AbortController()
      return controller.signal
    },
  }
}
