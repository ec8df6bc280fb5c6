// Slots: how many runs this process drives, in all and for one organisation. Among the runs that
// may start, the first come is the first served.
import { fault } from '#kernel'
import type { RunsConfig } from '../config.ts'

export type Waiting = { readonly id: string; readonly orgId: string }
export type Slots = ReturnType<typeof createSlots>

/**
 * Bounds of the pause that a refused client is told, in milliseconds. The pause is about the time
 * until some waiting runs have ended.
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
  /**
   * Runs that were given a slot from the line and have not taken it yet. Their slots count as
   * taken.
   */
  const kept = new Set<string>()
  /** Admitted starts that have reached neither a slot nor the line. */
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
     * Takes a slot, or the slot that is reserved for the run. Without a slot the run joins the
     * line, and the result is false. Runs that a full line turns away are left to the sweep.
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
    /** Frees the slot, after so many milliseconds of use. */
    release(id: string, ms?: number): void {
      if (free(id) && ms !== undefined) meanMs += (ms - meanMs) / 16
    },
    /**
     * Reserves a slot for the first waiting run that may start. Later runs cannot overtake it until
     * it takes the slot or gives it up.
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
    /** Frees a slot that was reserved and is not needed. False where none was reserved. */
    cancelReservation: (id: string): boolean => kept.has(id) && free(id),
    /**
     * Throws SHEDDING when a new run of this organisation would only join a full line. Call the
     * result once the run has a slot, waits, or failed: until then the start counts.
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
    /** Runs that wait, or whose reserved slot is not taken yet. */
    line: (): Waiting[] => [
      ...[...kept].map(id => ({ id, orgId: taken.get(id)! })),
      ...waiting.values(),
    ],
    counts: () => ({ active: taken.size, waiting: waiting.size, organisations: byOrg.size }),
    shed: () => shed,
  }
}
