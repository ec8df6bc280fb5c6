import { Type as t } from 'typebox'
import { ops } from '#contracts/ops.ts'
import { definePlugin, fault, Host, reply } from '#kernel'
import { SystemClock } from '#ports/clock.ts'
import { serveMetrics } from './metrics-port.ts'

export default definePlugin({
  name: 'ops', version: '1.0.0', kernel: '^1.0.0',
  contract: ops,
  uses: { host: Host, clock: SystemClock },
  config: t.Object({ metrics_port: t.Optional(t.Integer({ minimum: 0, maximum: 65535, 'x-env': 'METRICS_PORT', description: 'Serves /metrics here, and no longer on PORT.' })) }),
  routes: {
    'GET /healthz': ({ host }) => ({ status: 'ok' as const, version: host.version }),
    'GET /readyz': async ({ host }) => {
      const checks = await host.health()
      const ready = host.serving() && checks.every(({ ok }) => ok)
      return reply({ status: ready ? 'ready' as const : 'not ready' as const, checks: [...checks] }, { status: ready ? 200 : 503 })
    },
    'GET /metrics': async ({ host, config }) => {
      if (config.metrics_port !== undefined) throw fault('NOT_FOUND', { what: 'metrics on this port; see METRICS_PORT' })
      const { text, mime } = await host.exposition()
      return { stream: Buffer.from(text), mime }
    },
  },
  start: serveMetrics,
})
