// How jobs and timetables are stored.
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { JobState } from '#ports/queue.ts'
import { collection, type StorageEngine } from '#ports/storage.ts'
import type { Json } from '#ports/token.ts'

/**
 * `due` is when somebody may take it: the time to run while it waits, the end of the lease while it
 * runs, absent when it has ended.
 *  `active` holds the dedupe key as long as the job has not ended.
 */
export type Row = {
  id: string
  name: string
  data: Json
  state: JobState
  attempt: number
  due?: number
  active?: string
  owner?: string
  error?: string
  expiresAt?: number
}
export type Timetable = {
  id: string
  name: string
  data: Json
  cron: string
  timezone: string
  due: number
}
export type World = { readonly storage: StorageEngine; readonly clock: Clock; readonly log: Log }

export const jobs = collection<Row>({
  name: 'jobs',
  scope: 'platform',
  unique: [['active']],
  index: [['name', 'due'], ['owner']],
  expires: 'expiresAt',
})
export const timetables = collection<Timetable>({
  name: 'timetables',
  scope: 'platform',
  index: [['due']],
})
