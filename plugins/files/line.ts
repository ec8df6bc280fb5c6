// So many at a time, so many waiting their turn, no user with more than a share: an upload that trickles in holds its place for long.
import { fault } from '#kernel'
import type { Clock } from '#ports/clock.ts'

type Waiting = { readonly user: string; readonly go: () => void }
type Bounds = { readonly atOnce: number; readonly perUser: number; readonly waitingMax: number; readonly waitMsMax: number }

export function createLine({ atOnce, perUser, waitingMax, waitMsMax }: Bounds, clock: Clock) {
  const inside = new Map<string, number>(), line: Waiting[] = []
  let busy = 0
  const insideOf = (user: string) => inside.get(user) ?? 0
  const fits = (user: string) => busy < atOnce && insideOf(user) < perUser
  const take = (user: string) => {
    busy++
    inside.set(user, insideOf(user) + 1)
  }
  const leave = (user: string) => {
    busy--
    if (insideOf(user) === 1) inside.delete(user)
    else inside.set(user, insideOf(user) - 1)
    // The first whose user has room: a user with a full share holds up nobody else.
    const at = line.findIndex(waiting => fits(waiting.user)), next = line[at]
    if (!next) return
    line.splice(at, 1)
    take(next.user)
    next.go()
  }
  const shed = () => fault('SHEDDING', { seconds: waitMsMax / 1000 }, { retryAfterMs: waitMsMax })

  const wait = async (user: string, signal: AbortSignal) => {
    if (line.length >= waitingMax) throw shed()
    const { promise, resolve } = Promise.withResolvers<'turn'>()
    const mine: Waiting = { user, go: () => resolve('turn') }
    line.push(mine)
    const over = new AbortController(), stop = AbortSignal.any([signal, over.signal])
    const late = clock.sleep(waitMsMax, stop).then(() => 'late' as const, () => 'gone' as const)
    const outcome = await Promise.race([promise, late])
    over.abort()
    const at = line.indexOf(mine)
    // The turn may have come in the same moment: then the place is taken already.
    if (outcome === 'turn' || at < 0) return
    line.splice(at, 1)
    signal.throwIfAborted()
    throw shed()
  }
  return {
    /** Runs `work` when its turn has come. SHEDDING when the line is full or the wait was too long; the signal's reason when it aborts meanwhile. */
    async enter<T>(user: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
      if (fits(user)) take(user)
      else await wait(user, signal)
      try {
        return await work()
      } finally {
        leave(user)
      }
    },
  }
}
