// The metric of waiting jobs. Frequent scrapes cost the storage no more, because counts are cached.
// If the storage is slow or away, only these lines are missing from the page.
import { Gauge } from 'prom-client'
import type { Clock } from '#ports/clock.ts'
import type { Depth, Queue } from '#ports/queue.ts'
import { atMost } from '../deadline.ts'

/** Milliseconds: how long counts are cached; how long a scrape waits for new ones. */
const cachedMs = 5000
const askedMsMax = 1000
type Depths = Readonly<Record<string, Depth>>

/** `names`: the jobs to count. The caller registers the gauge. */
export function queueDepths({
  clock,
  queue,
  names,
}: {
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
  readonly queue: Pick<Queue, 'depth'>
  readonly names: () => readonly string[]
}): Gauge {
  let latest: Promise<Depths> = Promise.resolve({})
  let at = Number.NEGATIVE_INFINITY
  let isAsking = false
  const ask = async (): Promise<Depths> => {
    isAsking = true
    try {
      return await queue.depth(names())
    } catch {
      // Counted among the adapters' errors.
      return {}
    } finally {
      isAsking = false
      at = clock.monotonic()
    }
  }
  return new Gauge({
    name: 'queue_jobs',
    help:
      'Jobs in the queue, of all processes: due and taken by nobody (waiting), under way ' +
      '(running).',
    labelNames: ['job', 'state'],
    registers: [],
    async collect() {
      if (!isAsking && clock.monotonic() - at >= cachedMs) latest = ask()
      const depths = await atMost(clock, askedMsMax, latest, (): Depths => ({}))
      this.reset()
      for (const [job, states] of Object.entries(depths))
        for (const [state, count] of Object.entries(states)) this.set({ job, state }, count)
    },
  })
}
