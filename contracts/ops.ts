import { Type as t } from 'typebox'
import { contract, named, tagged } from './contract.ts'

const Check = named(
  'ReadinessCheck',
  t.Object({
    name: t.String({ example: 'port:storage' }),
    ok: t.Boolean({ example: true }),
    detail: t.Optional(t.String()),
  }),
)
export const ops = tagged(
  'Health',
  contract({
    'GET /healthz': {
      id: 'getLiveness',
      description: 'Answers as long as the process handles requests. It asks no store.',
      summary: 'Is the process alive?',
      auth: 'public',
      everywhere: true,
      reply: t.Object({ status: t.Literal('ok'), version: t.String({ example: '0.1.0' }) }),
    },
    'GET /readyz': {
      id: 'getReadiness',
      otherStatuses: [503],
      summary: 'Can it serve?',
      description:
        'The checks name what fails. 503 (`not ready`): nothing can be served. 200 with ' +
        '`degraded`: what needs that part is refused, everything else is served.',
      auth: 'public',
      everywhere: true,
      reply: t.Object({
        status: t.Union([t.Literal('ready'), t.Literal('degraded'), t.Literal('not ready')]),
        checks: t.Array(Check),
      }),
    },
    'GET /metrics': {
      id: 'getMetrics',
      summary: 'Metrics in Prometheus text format',
      description:
        'Public, unless METRICS_TOKEN is set: then it is asked for as Authorization: Bearer.',
      auth: 'public',
      everywhere: true,
      reply: { bytes: 'text/plain; version=0.0.4; charset=utf-8' },
      faults: ['NOT_FOUND', 'CREDENTIAL_REFUSED'],
    },
  }),
)
export const docs = tagged(
  'Documentation',
  contract({
    'GET /openapi.json': {
      id: 'getOpenApi',
      summary: 'This document (OpenAPI 3.1)',
      description: 'Answers 304 to an If-None-Match with its ETag.',
      auth: 'public',
      revalidated: true,
      reply: { bytes: 'application/json; charset=utf-8' },
    },
    'GET /docs': {
      id: 'getDocs',
      description: 'One page without scripts. Answers 304 to an If-None-Match with its ETag.',
      summary: 'The same, to read',
      auth: 'public',
      revalidated: true,
      reply: { bytes: 'text/html; charset=utf-8' },
    },
  }),
)
