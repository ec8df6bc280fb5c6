// Who may be driven now: so many runs in this process, so many of one organisation, first come
// first served among those that may.
import { fault } from '#kernel'
import type { RunsConfig } from '../config.ts'

export type Waiting = { readonly id: string; readonly orgId: string }
export type Slots = ReturnType<typeof createSlots>

/**
 * What a refused start is told to wait, in milliseconds: about as long as it takes until some of
 * those that wait are through.
 */
const retryMsMin = 1000
const retryMsMax = 30_000

export function createSlots({
  active_max: activeMax,
  active_per_org_max: orgMax,
  waiting_max: waitingMax,
  waiting_per_org_max: waitingOrgMax,
}: RunsConfig) {
  const taken = new Map<string, string>()
  const byOrg = new Map<string, number>()
  const waiting = new Map<string, Waiting>()
  const waitingByOrg = new Map<string, number>()
  /** Places of those that were called and have not come yet; they are taken, too. */
  const kept = new Set<string>()
  /** Starts that were let in and have not come as far as a place or the line. */
  const comingByOrg = new Map<string, number>()
  let coming = 0
  let shed = 0
  let meanMs = retryMsMin
  const count = (counts: Map<string, number>, orgId: string, by: number) => {
    const now = (counts.get(orgId) ?? 0) + by
    if (now > 0) counts.set(orgId, now)
    else counts.delete(orgId)
  }
  const roomFor = (orgId: string) => taken.size < activeMax && (byOrg.get(orgId) ?? 0) < orgMax
  const forget = ({ id, orgId }: Waiting) => {
    if (waiting.delete(id)) count(waitingByOrg, orgId, -1)
  }
  const take = (one: Waiting) => {
    forget(one)
    taken.set(one.id, one.orgId)
    count(byOrg, one.orgId, 1)
  }
  const free = (id: string): boolean => {
    const orgId = taken.get(id)
    if (orgId === undefined) return false
    kept.delete(id)
    taken.delete(id)
    count(byOrg, orgId, -1)
    return true
  }
  return {
    /**
     * Takes a place, or the one that is kept for it. Without one the run waits, and false is the
     * answer; the line is bounded, and what does not fit in is left to the sweep.
     */
    acquire({ id, orgId }: Waiting): boolean {
      if (kept.delete(id)) return true
      if (taken.has(id)) return false
      if (roomFor(orgId)) {
        take({ id, orgId })
        return true
      }
      if (!waiting.has(id) && waiting.size < waitingMax + activeMax) {
        waiting.set(id, { id, orgId })
        count(waitingByOrg, orgId, 1)
      }
      return false
    },
    /** Gives the place back, after so many milliseconds of use. */
    release(id: string, ms?: number): void {
      if (free(id) && ms !== undefined) meanMs += (ms - meanMs) / 16
    },
    /**
     * The first in line that may be driven now. Its place is kept until it enters or gives up:
     * whoever comes meanwhile does not overtake it.
     */
    reserveNext(): Waiting | undefined {
      if (waiting.size === 0 || taken.size >= activeMax) return undefined
      for (const one of waiting.values()) {
        if (!roomFor(one.orgId)) continue
        take(one)
        kept.add(one.id)
        return one
      }
      return undefined
    },
    /** Gives back a place that was kept and is not wanted; false where there is none. */
    cancelReservation: (id: string): boolean => kept.has(id) && free(id),
    /**
     * SHEDDING when a new run of this organisation would only stand in a line that is full. To be
     * told when it has come to its place or there, or nowhere: until then it counts.
     */
    admit(orgId: string): () => void {
      const slots = activeMax - taken.size
      const orgPlaces = Math.min(slots, orgMax - (byOrg.get(orgId) ?? 0))
      const orgComing = comingByOrg.get(orgId) ?? 0
      const hasPlace = coming < slots && orgComing < orgPlaces
      const inLine = waiting.size + Math.max(0, coming - slots)
      const orgInLine = (waitingByOrg.get(orgId) ?? 0) + Math.max(0, orgComing - orgPlaces)
      if (hasPlace || (inLine < waitingMax && orgInLine < waitingOrgMax)) {
        let came = false
        const come = (by: number) => {
          coming += by
          count(comingByOrg, orgId, by)
        }
        come(1)
        return () => {
          if (!came) come(-1)
          came = true
        }
      }
      shed++
      const retryAfterMs = Math.min(
        retryMsMax,
        Math.max(retryMsMin, Math.ceil((meanMs * waiting.size) / activeMax / 2)),
      )
      throw fault('SHEDDING', { seconds: Math.ceil(retryAfterMs / 1000) }, { retryAfterMs })
    },
    /** Who waits, or was called and has not come. */
    line: (): Waiting[] => [
      ...[...kept].map(id => ({ id, orgId: taken.get(id)! })),
      ...waiting.values(),
    ],
    counts: () => ({ active: taken.size, waiting: waiting.size, organisations: byOrg.size }),
    shed: () => shed,
  }
}
