// Bounds the runs that wait for a worker, in a process that drives none. Starts beyond the bound
// are refused.
// The backlog is counted at most once a second; starts of this process since then are added.
import { fault } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Runs, sweepReason } from '../collections.ts'
import type { RunsConfig } from '../config.ts'
import type { Slots } from './slots.ts'

/**
 * A count is valid for `countMs`. A refused client should wait `retryMs`. Both are in milliseconds.
 */
const countMs = 1000
const retryMs = 5000

export function createBacklog({
  store,
  clock,
  log,
  config,
}: {
  store: ScopedStorage
  clock: Clock
  log: Log
  config: RunsConfig
}): Slots {
  let waiting = 0
  let since = 0
  let countedAt = Number.NEGATIVE_INFINITY
  let shed = 0
  const count = async () => {
    countedAt = clock.monotonic()
    since = 0
    waiting = await store
      .system(sweepReason)
      .count(Runs, { phase: 'placed', due: 0, owner: { exists: false } })
  }
  return {
    admit() {
      if (clock.monotonic() - countedAt > countMs)
        void count().catch((error: unknown) => log('warn', 'runs.backlog', { error }))
      if (waiting + since >= config.waiting_max) {
        shed++
        throw fault('SHEDDING', { seconds: retryMs / 1000 }, { retryAfterMs: retryMs })
      }
      since++
      return () => undefined
    },
    counts: () => ({ active: 0, waiting: waiting + since, organisations: 0 }),
    shed: () => shed,
    // Nothing is driven here.
    acquire: () => false,
    release: () => undefined,
    reserveNext: () => undefined,
    cancelReservation: () => false,
    line: () => [],
  }
}
