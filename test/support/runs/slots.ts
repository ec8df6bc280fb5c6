// The slots of one process, and runs that come and go. A run's id begins with its organisation.
import type { RunsConfig } from '../../../plugins/runs/config.ts'
import { createSlots, type Slots } from '../../../plugins/runs/admission/slots.ts'

export type Caps = { active: number; perOrg: number; waiting: number; waitingPerOrg: number }
export const placesFor = ({ active, perOrg, waiting, waitingPerOrg }: Caps): Slots =>
  createSlots({
    active_max: active,
    active_per_org_max: perOrg,
    waiting_max: waiting,
    waiting_per_org_max: waitingPerOrg,
  } as RunsConfig)
export const roomy: Caps = { active: 2, perOrg: 2, waiting: 100, waitingPerOrg: 100 }
export const enter = (slots: Slots, ...names: string[]) =>
  names.map(id => slots.acquire({ id, orgId: id[0]! }))
export const nextIds = (slots: Slots) => {
  const found: string[] = []
  for (let next = slots.reserveNext(); next; next = slots.reserveNext()) found.push(next.id)
  return found
}
