// Bounds how long the kernel waits for a plugin's code during loading and undoing, so that the next
// change and the stop can go on.
import type { Clock } from '#ports/clock.ts'
import { atMost } from '../deadline.ts'
import { stayAwake } from './awake.ts'

/**
 * Milliseconds for all undoing together at a stop. The command line ends the process a little
 * earlier.
 */
export const stopUndoMsMax = 5000

/** `setting`: the name of the setting that holds `msMax`. */
type Limit = { readonly msMax: number; readonly setting: string }

export type Steps = {
  /**
   * Waits for one step of loading. Rejects with a sentence when the step takes too long, and at
   * once when the kernel stops.
   */
  within<T>(step: string, work: () => T | Promise<T>, limit?: Limit): Promise<T>
  /**
   * Waits for one undo; during a stop not beyond the stop's end. An undo that takes longer is left
   * behind.
   */
  undo(work: () => unknown): Promise<void>
  /** Ends all waiting for steps. Undos are waited for until this time of the steady clock. */
  stop(until: number): void
}

export function createSteps({
  clock,
  msMax,
}: {
  readonly clock: Clock
  readonly msMax: number
}): Steps {
  const stopping = new AbortController()
  const usual: Limit = { msMax, setting: 'PLUGIN_STEP_MS' }
  let until = Infinity

  /**
   * Answers the work's result, or what ended the wait. A later rejection of the work is ignored.
   */
  const race = async <T>(
    work: () => T | Promise<T>,
    ms: number,
    late: () => Error,
    ends?: AbortSignal,
  ): Promise<T> => {
    const sleep = stayAwake()
    const refuse = () => {
      throw late()
    }
    try {
      return await atMost(clock, ms, (async () => work())(), refuse, ends)
    } finally {
      sleep()
    }
  }
  return {
    within: (step, work, limit = usual) => {
      const late = () => new Error(`${step} took longer than ${limit.msMax} ms (${limit.setting})`)
      if (stopping.signal.aborted) return Promise.reject(stopping.signal.reason as Error)
      return race(work, limit.msMax, late, stopping.signal)
    },
    undo: async work => {
      const ms = Math.max(0, Math.min(msMax, until - clock.monotonic()))
      await race(work, ms, () => new Error(`an undo took longer than ${Math.round(ms)} ms`))
    },
    stop(at) {
      until = at
      stopping.abort(new Error('the platform is being stopped'))
    },
  }
}
