// What the parts of the storage kit share: the collections that they work on, and a fresh engine
// for each test.
import type { ManualClock } from '#adapters/clock/manual.ts'
import { collection, type Query, type StorageEngine, type Where } from '#ports/storage.ts'

export type Place = {
  readonly clock: ManualClock
  open(): Promise<StorageEngine>
  clean?(): Promise<void>
}
export type Kit = {
  place: () => Promise<Place>
  /** What was durable is there after closing and opening again. */
  survives: boolean
}
export type Thing = {
  id: string
  team?: string
  name?: string
  size?: number
  on?: boolean
  free?: unknown
  list?: unknown[]
  until?: number
  rank?: number
}
export type On = (
  title: string,
  run: (engine: StorageEngine, clock: ManualClock) => Promise<void>,
) => void

export const things = collection<Thing>({
  name: 'things',
  scope: 'platform',
  unique: [['team', 'name']],
  index: [['size'], ['team', 'rank'], ['on']],
})
export const fleeting = collection<Thing>({
  name: 'fleeting',
  scope: 'platform',
  unique: [['name']],
  expires: 'until',
})

export const ids = async (engine: StorageEngine, where: Where, query: Query = {}) =>
  (await engine.find(things, { ...query, where })).items.map(({ id }) => id)
