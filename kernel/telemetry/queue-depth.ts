// How many jobs wait in the queue, as a figure for operators. Whoever scrapes how often costs the
// store no more, and a store that is slow or away takes these lines from the page, never the page.
import { Gauge } from 'prom-client'
import type { Clock } from '#ports/clock.ts'
import type { Depth, Queue } from '#ports/queue.ts'

/** Milliseconds: how long what the queue told is told again; how long a scrape waits for it. */
const cachedMs = 5000
const askedMsMax = 1000
type Depths = Readonly<Record<string, Depth>>

/** `names`: of the jobs that are asked for now. In no registry yet. */
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
      const enough = new AbortController()
      const none = (): Depths => ({})
      const depths = await Promise.race([
        latest,
        clock.sleep(askedMsMax, enough.signal).then(none, none),
      ])
      enough.abort()
      this.reset()
      for (const [job, states] of Object.entries(depths))
        for (const [state, count] of Object.entries(states)) this.set({ job, state }, count)
    },
  })
}
