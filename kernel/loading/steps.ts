// Bounds what a plugin's code is waited for while it is loaded and undone: the next change and the
// stop go on.
import type { Clock } from '#ports/clock.ts'
import { stayAwake } from './awake.ts'

/**
 * What a stop gives all undoing together, in milliseconds. The command line ends the process a
 * little earlier.
 */
export const stopUndoMsMax = 5000

/** `setting`: whose value `msMax` is. */
export type Limit = { readonly msMax: number; readonly setting: string }

export type Steps = {
  /**
   * Waits for one step of loading. Rejects with a sentence when it takes too long, and at once when
   * the kernel stops.
   */
  within<T>(step: string, work: () => T | Promise<T>, limit?: Limit): Promise<T>
  /**
   * Waits for one undo, of a stop no longer than until its end. What takes longer is left behind.
   */
  undo(work: () => unknown): Promise<void>
  /** From now on no step is waited for, and no undo beyond this time of the steady clock. */
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

  /** Either what the work answers, or what ended the wait. The loser's rejection is nobody's. */
  const race = async <T>(
    work: () => T | Promise<T>,
    ms: number,
    late: () => Error,
    ends?: AbortSignal,
  ): Promise<T> => {
    const over = new AbortController()
    const sleep = stayAwake()
    const limit = clock
      .sleep(ms, ends ? AbortSignal.any([over.signal, ends]) : over.signal)
      .then(() => Promise.reject(late()))
    try {
      return await Promise.race([(async () => work())(), limit])
    } finally {
      over.abort()
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
