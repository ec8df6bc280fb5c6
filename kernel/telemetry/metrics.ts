// What the kernel itself counts; plugins register their own beside it. Every name is in
// OPERATIONS.md.
import {
  Counter,
  Gauge,
  Histogram,
  Registry,
  collectDefaultMetrics,
  type Metric,
} from 'prom-client'
import type { HttpReport } from '#ports/http.ts'

export function createMetrics(others: readonly Metric[]) {
  const registry = new Registry()
  const registers = [registry]
  collectDefaultMetrics({ register: registry })
  for (const metric of others) registry.registerMetric(metric)
  const requests = new Counter({
    name: 'http_requests_total',
    help: 'Requests answered, by route template.',
    labelNames: ['method', 'route', 'status'],
    registers,
  })
  const seconds = new Histogram({
    name: 'http_request_duration_seconds',
    help: 'Time until the answer was sent (of a stream: until it began).',
    labelNames: ['route'],
    buckets: [0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5],
    registers,
  })
  const loads = new Counter({
    name: 'plugin_loads_total',
    help: 'Generations of plugins that began to serve.',
    labelNames: ['plugin'],
    registers,
  })
  const refused = new Counter({
    name: 'plugin_load_failures_total',
    help: 'Changes of plugins that were refused: what could not be imported, built or swapped in.',
    registers,
  })
  const running = new Gauge({
    name: 'jobs_running',
    help: 'Jobs that this process works on.',
    labelNames: ['job'],
    registers,
  })
  const worked = new Counter({
    name: 'jobs_ended_total',
    help: 'Tries of jobs in this process, by how they ended.',
    labelNames: ['job', 'result'],
    registers,
  })
  // A labelled child is looked up by hashing its labels; kept, it is not. Bounded: methods × routes
  // × statuses.
  const counted = new Map<string, Counter.Internal>()
  const timed = new Map<string, Histogram.Internal<string>>()
  const report: HttpReport = ({ method, route, status, seconds: taken }) => {
    const key = `${method} ${route} ${status}`
    let counter = counted.get(key)
    let histogram = timed.get(route)
    if (!counter) counted.set(key, (counter = requests.labels(method, route, String(status))))
    if (!histogram) timed.set(route, (histogram = seconds.labels(route)))
    counter.inc()
    histogram.observe(taken)
  }
  const job = async (name: string, act: () => Promise<void>): Promise<void> => {
    running.inc({ job: name })
    try {
      await act()
      worked.inc({ job: name, result: 'done' })
    } catch (error) {
      worked.inc({ job: name, result: 'failed' })
      throw error
    } finally {
      running.dec({ job: name })
    }
  }
  const gaugeStreams = (count: () => number) =>
    new Gauge({
      name: 'http_open_streams',
      help: 'Event streams open now.',
      registers,
      collect() {
        this.set(count())
      },
    })
  return {
    registry,
    report,
    job,
    loaded: (plugin: string) => loads.inc({ plugin }),
    refused: () => refused.inc(),
    gaugeStreams,
  }
}
export type Metrics = ReturnType<typeof createMetrics>
