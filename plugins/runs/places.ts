// Who may be driven now: so many runs in this process, so many of one organisation, first come first served among those that may.
import { fault } from '#kernel'
import type { RunsConfig } from './config.ts'

export type Waiting = { readonly id: string; readonly orgId: string }
export type Places = ReturnType<typeof createPlaces>

/** What a refused start is told to wait, in milliseconds: about as long as it takes until some of those that wait are through. */
const retryMsMin = 1000, retryMsMax = 30_000

export function createPlaces({ active_max: activeMax, active_per_org_max: orgMax, waiting_max: waitingMax, waiting_per_org_max: waitingOrgMax }: RunsConfig) {
  const taken = new Map<string, string>(), byOrg = new Map<string, number>(), waiting = new Map<string, Waiting>(), waitingByOrg = new Map<string, number>()
  let shed = 0, meanMs = retryMsMin
  const count = (counts: Map<string, number>, orgId: string, by: number) => {
    const now = (counts.get(orgId) ?? 0) + by
    if (now > 0) counts.set(orgId, now)
    else counts.delete(orgId)
  }
  const roomFor = (orgId: string) => taken.size < activeMax && (byOrg.get(orgId) ?? 0) < orgMax
  const forget = ({ id, orgId }: Waiting) => {
    if (waiting.delete(id)) count(waitingByOrg, orgId, -1)
  }
  return {
    /** Takes a place. Without one the run waits, and false is the answer; the line is bounded, and what does not fit in is left to the sweep. */
    enter({ id, orgId }: Waiting): boolean {
      if (taken.has(id)) return false
      if (roomFor(orgId)) {
        forget({ id, orgId })
        taken.set(id, orgId)
        count(byOrg, orgId, 1)
        return true
      }
      if (!waiting.has(id) && waiting.size < waitingMax + activeMax) {
        waiting.set(id, { id, orgId })
        count(waitingByOrg, orgId, 1)
      }
      return false
    },
    /** Gives the place back, after so many milliseconds of use. */
    leave(id: string, ms?: number): void {
      const orgId = taken.get(id)
      if (orgId === undefined || !taken.delete(id)) return
      count(byOrg, orgId, -1)
      if (ms !== undefined) meanMs += (ms - meanMs) / 16
    },
    /** The first in line that may be driven now; it leaves the line. */
    next(): Waiting | undefined {
      if (waiting.size === 0 || taken.size >= activeMax) return undefined
      for (const one of waiting.values()) {
        if (!roomFor(one.orgId)) continue
        forget(one)
        return one
      }
      return undefined
    },
    /** SHEDDING when a new run of this organisation would only stand in a line that is full. */
    admit(orgId: string): void {
      if (waiting.size < waitingMax && (waitingByOrg.get(orgId) ?? 0) < waitingOrgMax) return
      if (roomFor(orgId)) return
      shed++
      const retryAfterMs = Math.min(retryMsMax, Math.max(retryMsMin, Math.ceil((meanMs * waiting.size) / activeMax / 2)))
      throw fault('SHEDDING', { seconds: Math.ceil(retryAfterMs / 1000) }, { retryAfterMs })
    },
    counts: () => ({ active: taken.size, waiting: waiting.size, organisations: byOrg.size }),
    shed: () => shed,
  }
}
