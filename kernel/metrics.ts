// What the kernel itself counts; plugins register their own beside it.
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client'
import type { HttpReport } from '#ports/http.ts'

export function createMetrics() {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const requests = new Counter({ name: 'http_requests_total', help: 'Requests answered, by route template.', labelNames: ['method', 'route', 'status'], registers: [registry] })
  const seconds = new Histogram({ name: 'http_request_seconds', help: 'Time until the answer was sent (of a stream: its head).', labelNames: ['route'], buckets: [0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5], registers: [registry] })
  const swaps = new Counter({ name: 'kernel_swaps_total', help: 'Changes of the set of running plugins.', registers: [registry] })
  const report: HttpReport = entry => {
    requests.labels(entry.method, entry.route, String(entry.status)).inc()
    seconds.labels(entry.route).observe(entry.seconds)
  }
  const gaugeStreams = (count: () => number) => new Gauge({ name: 'http_open_streams', help: 'Event streams open now.', registers: [registry], collect() { this.set(count()) } })
  return { registry, report, swapped: () => swaps.inc(), gaugeStreams }
}
