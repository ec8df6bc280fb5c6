// When the storage is asked again: at a wake-up, at the next time that is due, or after a while.
import type { Clock } from '#ports/clock.ts'
import type { World } from './rows.ts'

/**
 * How soon another process's job is seen; where there is no other process, only a forgotten wake-up
 * waits so long.
 */
const pollMs = { shared: 1000, exclusive: 30_000 } as const
const retryMs = 1000

/**
 * Sleeps until woken or the time has come; `wake` before `sleep` makes the next sleep end at once.
 */
function createPause(clock: Clock) {
  let woken = false
  let sleeping: AbortController | undefined
  return {
    wake() {
      woken = true
      sleeping?.abort()
    },
    async sleep(ms: number) {
      if (!woken) {
        sleeping = new AbortController()
        await clock.sleep(ms, sleeping.signal).catch(() => {})
      }
      woken = false
      sleeping = undefined
    },
  }
}
export const pollAfter = ({ storage, clock }: World): number =>
  (storage.exclusive ? pollMs.exclusive : pollMs.shared) * (0.75 + clock.random() / 2)

/**
 * Calls `turn`, which answers when it wants to be called again, until stopped. A failing storage
 * delays and ends nothing.
 */
export function repeat(world: World, event: string, turn: () => Promise<number>) {
  const pause = createPause(world.clock)
  let stopped = false
  async function loop(): Promise<void> {
    while (!stopped) {
      let next: number
      try {
        next = await turn()
      } catch (error) {
        world.log('warn', event, { error: (error as Error).message })
        next = retryMs
      }
      if (!stopped) await pause.sleep(Math.max(0, next))
    }
  }
  const ended = loop()
  return {
    wake: pause.wake,
    stop() {
      stopped = true
      pause.wake()
      return ended
    },
  }
}
