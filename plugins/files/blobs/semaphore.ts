// A semaphore for uploads. It bounds how many run, how many wait, and the share of one user and one
// address. A slow upload holds its permit for long.
import { fault } from '#kernel'
import { addressGroup } from '#ports/address.ts'
import type { Clock } from '#ports/clock.ts'
import { lineMsMax, type FilesConfig } from '../config.ts'

export type Comer = { readonly user: string; readonly address: string }
type Waiting = { readonly who: Comer; readonly go: () => void }
type Bounds = {
  readonly atOnce: number
  readonly perUser: number
  readonly perAddress: number
  readonly waitingMax: number
  readonly waitMsMax: number
}

export function createSemaphore(
  { atOnce, perUser, perAddress, waitingMax, waitMsMax }: Bounds,
  clock: Clock,
) {
  const running = new Map<string, number>()
  const queue: Waiting[] = []
  let busy = 0
  const runningOf = (key: string) => running.get(key) ?? 0
  const keysOf = ({ user, address }: Comer) => ({
    user: `user ${user}`,
    address: `address ${addressGroup(address)}`,
  })
  const fits = (who: Comer) =>
    busy < atOnce &&
    runningOf(keysOf(who).user) < perUser &&
    runningOf(keysOf(who).address) < perAddress
  const count = (who: Comer, by: 1 | -1) => {
    busy += by
    for (const key of Object.values(keysOf(who))) {
      if (runningOf(key) + by === 0) running.delete(key)
      else running.set(key, runningOf(key) + by)
    }
  }
  const release = (who: Comer) => {
    count(who, -1)
    // Starts the first waiting upload that fits. One whose share is full does not block others.
    const at = queue.findIndex(waiting => fits(waiting.who))
    const next = queue[at]
    if (!next) return
    queue.splice(at, 1)
    count(next.who, 1)
    next.go()
  }
  const shed = () => fault('SHEDDING', { seconds: waitMsMax / 1000 }, { retryAfterMs: waitMsMax })

  const wait = async (who: Comer, signal: AbortSignal) => {
    if (queue.length >= waitingMax) throw shed()
    const { promise, resolve } = Promise.withResolvers<'turn'>()
    const mine: Waiting = { who, go: () => resolve('turn') }
    queue.push(mine)
    const over = new AbortController()
    const stop = AbortSignal.any([signal, over.signal])
    const late = clock.sleep(waitMsMax, stop).then(
      () => 'late' as const,
      () => 'gone' as const,
    )
    const outcome = await Promise.race([promise, late])
    over.abort()
    const at = queue.indexOf(mine)
    // The turn may have come at the same moment; then the permit is taken already.
    if (outcome === 'turn' || at < 0) return
    queue.splice(at, 1)
    signal.throwIfAborted()
    throw shed()
  }
  return {
    /**
     * Runs `work` when its turn has come. SHEDDING when too many wait, or when the wait was too
     * long. Rejects with the signal's reason when the signal aborts meanwhile.
     */
    async run<T>(who: Comer, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
      if (fits(who)) count(who, 1)
      else await wait(who, signal)
      try {
        return await work()
      } finally {
        release(who)
      }
    },
  }
}
export type Semaphore = ReturnType<typeof createSemaphore>

/** The one semaphore for all incoming files. */
export const createReceiving = ({
  config,
  clock,
}: {
  config: FilesConfig
  clock: Clock
}): Semaphore =>
  createSemaphore(
    {
      atOnce: config.receiving_max,
      perUser: Math.ceil(config.receiving_max / 4),
      perAddress: Math.ceil(config.receiving_max / 2),
      waitingMax: config.line_max,
      waitMsMax: lineMsMax,
    },
    clock,
  )
