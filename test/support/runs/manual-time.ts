// A server on a clock that the test moves.
import { manualClock } from '#adapters/clock/manual.ts'
import { startEngine, until } from '../engine.ts'
import type { Play } from '../scripted-model.ts'

export const stallMs = 10_000
/** Beats come every second. Nothing else in the engine needs the clock. */
const env = { RUNS_STALL_MS: String(stallMs), RUNS_LEASE_MS: '3000', RUNS_SWEEP_MS: '1000' }
export const timed = async (play: Play, more: Parameters<typeof startEngine>[1] = {}) => {
  const clock = manualClock(Date.now())
  const engine = await startEngine(play, {
    ...more,
    env: { ...env, ...more.env },
    given: { clock, ...more.given },
  })
  /**
   * Stops the server and moves the clock meanwhile: a stop polls for idle connections, and waits
   * for tools' bodies.
   */
  const stop = async () => {
    let over = false
    const stopped = engine.stop().finally(() => {
      over = true
    })
    await until('the server has stopped', async () => {
      await clock.advance(50)
      return over
    })
    return stopped
  }
  return { clock, engine, stop }
}
