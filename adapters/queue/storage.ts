// Jobs as documents on any storage: a lease is a time until which nobody else takes the job; where
// several processes share the storage, a heartbeat that stands still, for their clocks are not
// compared.
import { fault, hasCode } from '#contracts/faults.ts'
import { defineAdapter, type Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Queue } from '#ports/queue.ts'
import type { StorageEngine } from '#ports/storage.ts'
import { checkedJobOptions, closeMsMax, keptMs } from './lib/job-lease.ts'
import { depthOf } from './storage/depth.ts'
import { jobs, timetables, type Row, type World } from './storage/rows.ts'
import { createTimetables } from './storage/timetables.ts'
import { createWorker, type Worker } from './storage/worker.ts'

function createQueue(world: World): Queue {
  const { storage, clock } = world
  const workers = new Set<Worker & { readonly name: string }>()
  let closed: Promise<void> | undefined
  const open = () => {
    if (closed !== undefined) throw fault('UNAVAILABLE', { what: 'The queue', why: 'it is closed' })
  }
  const wake = (name: string) => {
    for (const worker of workers) if (worker.name === name) worker.wake()
  }

  async function add(row: Row): Promise<string> {
    for (;;) {
      try {
        await storage.insert(jobs, row)
        wake(row.name)
        return row.id
      } catch (error) {
        if (!hasCode(error, 'DUPLICATE')) throw error
        if (row.active === undefined) return row.id
        // The one that holds the key may end between the two calls; then the way is free.
        const {
          items: [first],
        } = await storage.find(jobs, { where: { active: row.active }, limit: 1 })
        if (first) return first.id
      }
    }
  }
  const scheduler = createTimetables(world, add)

  async function close(): Promise<void> {
    const stopping = [...workers].map(worker => {
      for (const { abort } of worker.running.values()) abort.abort('closing')
      return worker.stop()
    })
    // A handler that does not heed its signal must not hold the server for ever; its lease runs
    // out.
    const waited = new AbortController()
    await Promise.race([
      Promise.all([...stopping, scheduler.stop()]),
      clock.sleep(closeMsMax, waited.signal).catch(() => {}),
    ])
    waited.abort()
  }

  return {
    define(name, handler, options = {}) {
      open()
      const wanted = checkedJobOptions(options)
      const worker = { name, ...createWorker(world, name, handler, wanted) }
      workers.add(worker)
      return () => worker.stop().finally(() => workers.delete(worker))
    },
    async enqueue(name, data, { runAt, dedupeKey } = {}) {
      open()
      return add({
        id: clock.id(),
        name,
        data,
        state: 'waiting',
        attempt: 0,
        due: runAt ?? clock.now(),
        ...(dedupeKey === undefined ? {} : { active: `${name} ${dedupeKey}` }),
      })
    },
    async schedule(key, timetable) {
      open()
      return scheduler.schedule(key, timetable)
    },
    async unschedule(key) {
      open()
      return storage.remove(timetables, key)
    },
    async cancel(id) {
      open()
      const change = {
        set: { state: 'cancelled', expiresAt: clock.now() + keptMs },
        unset: ['due', 'active'],
      }
      if (await storage.update(jobs, id, change, { if: { state: 'waiting' } })) return true
      for (const worker of workers) worker.running.get(id)?.abort.abort('cancelled')
      return false
    },
    async state(id) {
      open()
      return (await storage.get(jobs, id))?.state
    },
    async depth(names) {
      open()
      return depthOf(world, names)
    },
    async ping() {
      open()
      await storage.ping()
    },
    close: () => (closed ??= close()),
  }
}

export async function queueOn(storage: StorageEngine, clock: Clock, log: Log): Promise<Queue> {
  await storage.define(jobs)
  await storage.define(timetables)
  return createQueue({ storage, clock, log })
}

export default defineAdapter<Queue>({
  port: 'queue',
  scheme: 'storage',
  needs: ['storage'],
  open: ({ engine, clock, log }) => queueOn(engine<StorageEngine>('storage'), clock, log),
})
