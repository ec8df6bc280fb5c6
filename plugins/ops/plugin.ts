import { Type as t } from 'typebox'
import { ops } from '#contracts/ops.ts'
import { definePlugin, fault, Host, reply } from '#kernel'
import { SystemClock } from '#ports/clock.ts'
import { checkToken, serveMetrics } from './exposition.ts'
import { createReadiness } from './readiness.ts'

/**
 * Parts without which the process is not ready. Without any other part only some operations fail,
 * so a balancer should not empty all processes.
 */
const vital: ReadonlySet<string> = new Set(
  ['storage', 'eventlog', 'queue', 'billing', 'limits'].map(port => `port:${port}`),
)

export default definePlugin({
  name: 'ops',
  version: '1.0.0',
  kernel: '^1.0.0',
  contract: ops,
  uses: { host: Host, clock: SystemClock },
  config: t.Object({
    metrics_port: t.Optional(
      t.Integer({
        minimum: 0,
        maximum: 65535,
        'x-env': 'METRICS_PORT',
        description: 'Serves /metrics here, and no longer on PORT.',
      }),
    ),
    metrics_host: t.Optional(
      t.String({
        'x-env': 'METRICS_HOST',
        description: 'The address to bind METRICS_PORT to; follows HOST.',
      }),
    ),
    metrics_token: t.Optional(
      t.String({
        minLength: 16,
        maxLength: 1000,
        'x-env': 'METRICS_TOKEN',
        'x-secret': true,
        description:
          'Whoever reads the metrics sends it as Authorization: Bearer; without it they ' +
          'are public.',
      }),
    ),
    host: t.String({ default: '0.0.0.0', 'x-env': 'HOST', description: 'The address to bind.' }),
    ready_cache_ms: t.Integer({
      default: 2000,
      minimum: 0,
      maximum: 60_000,
      'x-env': 'READY_CACHE_MS',
      description:
        'How long /readyz gives the same answer again, in milliseconds; a stop is told at once.',
    }),
  }),
  services: { readiness: createReadiness },
  routes: {
    'GET /healthz': ({ host }) => ({ status: 'ok' as const, version: host.version }),
    'GET /readyz': async ({ host, readiness }) => {
      const checks = await readiness.checks()
      const failing = checks.filter(({ ok }) => !ok)
      const status =
        !host.serving() || failing.some(({ name }) => vital.has(name))
          ? 'not ready'
          : failing.length > 0
            ? 'degraded'
            : 'ready'
      return reply({ status, checks: [...checks] } as const, {
        status: status === 'not ready' ? 503 : 200,
      })
    },
    'GET /metrics': async ({ host, config, headers }) => {
      if (config.metrics_port !== undefined)
        throw fault('NOT_FOUND', { what: 'metrics on this port; see METRICS_PORT' })
      checkToken(config, headers['authorization'])
      const { text, mime } = await host.exposition()
      return { stream: Buffer.from(text), mime }
    },
  },
  start: serveMetrics,
})
