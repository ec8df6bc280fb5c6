// What the kernel itself counts; plugins register their own beside it.
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'
import type { HttpReport } from '#ports/http.ts'

export function createMetrics() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const requests = new Counter({ name: 'http_requests_total', help: 'Requests answered, by route template.', labelNames: ['method', 'route', 'status'], registers: [registry] })
  const seconds = new Histogram({ name: 'http_request_seconds', help: 'Time until the answer was sent (of a stream: its head).', labelNames: ['route'], buckets: [0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5], registers: [registry] })
  const swaps = new Counter({ name: 'kernel_swaps_total', help: 'Changes of the set of running plugins.', registers: [registry] })
  // A labelled child is looked up by hashing its labels; kept, it is not. Bounded: methods × routes × statuses.
  const counted = new Map<string, Counter.Internal>(), timed = new Map<string, Histogram.Internal<string>>()
  const report: HttpReport = ({ method, route, status, seconds: taken }) => {
    const key = `${method} ${route} ${status}`
    let counter = counted.get(key), histogram = timed.get(route)
    if (!counter) counted.set(key, (counter = requests.labels(method, route, String(status))))
    if (!histogram) timed.set(route, (histogram = seconds.labels(route)))
    counter.inc()
    histogram.observe(taken)
  }
  const gaugeStreams = (count: () => number) => new Gauge({ name: 'http_open_streams', help: 'Event streams open now.', registers: [registry], collect() { this.set(count()) } })
  return { registry, report, swapped: () => swaps.inc(), gaugeStreams }
}
