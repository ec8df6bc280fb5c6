// Puts in the jobs of timetables, each time anew.
import { hasCode } from '#contracts/faults.ts'
import type { Queue } from '#ports/queue.ts'
import { nextTime } from '../lib/cron.ts'
import { pollAfter, repeat } from './poll.ts'
import { timetables, type Row, type World } from './rows.ts'

const firedAtOnce = 50

/**
 * The job is written before the timetable moves on: after a crash between the two its id is taken
 * already.
 */
export function createTimetables(world: World, enqueue: (row: Row) => Promise<string>) {
  const { storage, clock } = world
  const loop = repeat(world, 'queue.schedule_failed', async () => {
    const { items } = await storage.find(timetables, {
      orderBy: ['due', 'asc'],
      limit: firedAtOnce,
    })
    const ready = items.filter(({ due }) => due <= clock.now())
    for (const { id, name, data, cron, timezone, due } of ready) {
      await enqueue({
        id: `schedule:${id}@${due}`,
        name,
        data,
        state: 'waiting',
        attempt: 0,
        due: clock.now(),
      })
      await storage.update(
        timetables,
        id,
        { set: { due: nextTime(cron, timezone, clock.now()) } },
        { if: { due } },
      )
    }
    if (ready.length > 0) return 0
    return Math.min(pollAfter(world), (items[0]?.due ?? Infinity) - clock.now())
  })
  async function schedule(
    key: string,
    { name, data, cron, timezone }: Parameters<Queue['schedule']>[1],
  ): Promise<{ nextAt: number }> {
    const due = nextTime(cron, timezone, clock.now())
    const set = { name, data, cron, timezone, due }
    // The same times again keep what is due: a start of the server must not forget a time that was
    // missed.
    const kept = await storage.update(
      timetables,
      key,
      { set: { name, data } },
      { if: { cron, timezone } },
    )
    if (kept) return { nextAt: kept.due }
    if (!(await storage.update(timetables, key, { set }))) {
      try {
        await storage.insert(timetables, { id: key, ...set })
      } catch (error) {
        if (!hasCode(error, 'DUPLICATE')) throw error
        await storage.update(timetables, key, { set })
      }
    }
    loop.wake()
    return { nextAt: due }
  }
  return { schedule, stop: loop.stop }
}
