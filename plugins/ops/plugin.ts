import { Type as t } from 'typebox'
import { ops } from '#contracts/ops.ts'
import { definePlugin, fault, Host, reply } from '#kernel'
import { SystemClock } from '#ports/clock.ts'
import { serveMetrics } from './metrics-port.ts'

/** Nothing is served without these. Any other part that is away takes along what needs it, and not the whole service: a balancer would empty every process at once. */
const vital: ReadonlySet<string> = new Set(['storage', 'eventlog', 'queue', 'billing', 'limits'].map(port => `port:${port}`))

export default definePlugin({
  name: 'ops', version: '1.0.0', kernel: '^1.0.0',
  contract: ops,
  uses: { host: Host, clock: SystemClock },
  config: t.Object({ metrics_port: t.Optional(t.Integer({ minimum: 0, maximum: 65535, 'x-env': 'METRICS_PORT', description: 'Serves /metrics here, and no longer on PORT.' })) }),
  routes: {
    'GET /healthz': ({ host }) => ({ status: 'ok' as const, version: host.version }),
    'GET /readyz': async ({ host }) => {
      const checks = await host.health(), failing = checks.filter(({ ok }) => !ok)
      const status = !host.serving() || failing.some(({ name }) => vital.has(name)) ? 'not ready' : failing.length > 0 ? 'degraded' : 'ready'
      return reply({ status, checks: [...checks] } as const, { status: status === 'not ready' ? 503 : 200 })
    },
    'GET /metrics': async ({ host, config }) => {
      if (config.metrics_port !== undefined) throw fault('NOT_FOUND', { what: 'metrics on this port; see METRICS_PORT' })
      const { text, mime } = await host.exposition()
      return { stream: Buffer.from(text), mime }
    },
  },
  start: serveMetrics,
})
