// What the parts of the queue kit share: the place of a test, and ways of waiting.
import assert from 'node:assert/strict'
import type { ManualClock } from '#adapters/clock/manual.ts'
import type { Queue } from '#ports/queue.ts'
import type { Lacking } from '../runner.ts'

/**
 * `another`: a second queue on the same jobs, as another process has it; `die` ends it as a crash
 * does: it answers nothing and beats no more.
 */
export type Place = {
  readonly clock: ManualClock
  open(): Promise<Queue>
  another(): Promise<{ readonly queue: Queue; die(): void }>
  clean(): Promise<void>
}
/**
 * `time`: that the queue goes by the place's clock; `another` and `crash`: what `another` and its
 * `die` give.
 */
export type Need = 'time' | 'another' | 'crash'
export type Kit = Lacking<Need> & { place: () => Promise<Place> }
export type On = (
  title: string,
  needs: readonly Need[],
  run: (queue: Queue, place: Place) => Promise<void>,
) => void

export const real = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
/** Waits in real time, without moving the clock. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    if (await condition()) return
    await real(tries < 50 ? 1 : 5)
  }
  assert.fail(`waited in vain: ${what}`)
}
/** Moves the time on in steps until it happens; answers how far. */
export async function within(
  clock: ManualClock,
  ms: number,
  condition: () => boolean | Promise<boolean>,
  what: string,
  step = 250,
): Promise<number> {
  for (let passed = 0; passed <= ms; passed += step) {
    for (let tries = 0; tries < 2; tries++) {
      if (await condition()) return passed
      await real(1)
    }
    await clock.advance(step)
  }
  // What was begun in time may need a moment more on a busy machine.
  for (let tries = 0; tries < 1000; tries++) {
    if (await condition()) return ms
    await real(2)
  }
  return assert.fail(`waited in vain: ${what}`)
}
export const ends = (queue: Queue, id: string, state: string) =>
  until(async () => (await queue.state(id)) === state, `${id} ${state}`)
export function latch(): { readonly opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { opened: promise, open: resolve }
}
