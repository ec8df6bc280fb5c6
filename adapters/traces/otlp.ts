// Spans go to a collector by OTLP over HTTP, in batches. The SDK is loaded here and nowhere else:
// who does not trace does not carry it.
import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Context,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { fault, isFault } from '#contracts/faults.ts'
import { defineAdapter, type AdapterContext } from '#ports/adapter.ts'
import type { Tracer } from '#ports/traces.ts'

const kinds = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
} as const
/** A collector that is away delays nobody for longer than this at a stop, in milliseconds. */
const exportMsMax = 2000
/** What waits for the collector; more is dropped. */
const queuedMax = 4096

/** W3C Trace Context, section 3.2. An all-zero id is none. */
function contextOf(traceparent: string | undefined): Context {
  const [, traceId, spanId, flags] =
    /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})/.exec(traceparent ?? '') ?? []
  if (traceId === undefined || spanId === undefined || /^0+$/.test(traceId) || /^0+$/.test(spanId))
    return ROOT_CONTEXT
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: parseInt(flags!, 16) & TraceFlags.SAMPLED,
    isRemote: true,
  })
}
const codeOf = (error: unknown): string =>
  isFault(error) ? error.code : error instanceof Error ? error.name : String(error).slice(0, 40)

/** INVALID_FIELD names the setting. */
function endpointOf({ url, secret }: Pick<AdapterContext, 'url' | 'secret'>): string {
  const base = url.pathname || secret('OTEL_EXPORTER_OTLP_ENDPOINT')
  if (base === undefined || !URL.canParse(base) || !/^https?:$/.test(new URL(base).protocol))
    throw fault('INVALID_FIELD', {
      field: 'TRACES_URL',
      why: 'is written otlp:http://collector:4318, or otlp: with OTEL_EXPORTER_OTLP_ENDPOINT',
    })
  return `${base.replace(/\/{1,100}$/, '')}/v1/traces`
}
function ratioOf({ url }: Pick<AdapterContext, 'url'>): number {
  const ratio = Number(url.searchParams.get('sample') ?? 1)
  if (!(ratio >= 0 && ratio <= 1))
    throw fault('INVALID_FIELD', { field: 'sample', why: 'is a share between 0 and 1' })
  return ratio
}

export function createOtlp(opening: Pick<AdapterContext, 'url' | 'secret' | 'clock'>): Tracer {
  const exporter = new OTLPTraceExporter({ url: endpointOf(opening), timeoutMillis: exportMsMax })
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': opening.secret('OTEL_SERVICE_NAME') ?? 'agent-platform',
      'service.instance.id': opening.clock.id(),
    }),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(ratioOf(opening)) }),
    spanProcessors: [
      new BatchSpanProcessor({
        exporter,
        maxQueueSize: queuedMax,
        exportTimeoutMillis: exportMsMax,
      }),
    ],
  })
  const tracer = provider.getTracer('agent-platform', undefined, {
    schemaUrl: 'https://opentelemetry.io/schemas/1.37.0',
  })
  return {
    async span(name, { kind = 'internal', parent, attributes = {} }, act) {
      const span = tracer.startSpan(
        name,
        { kind: kinds[kind], attributes: attributes as Record<string, string> },
        contextOf(parent),
      )
      const { traceId, spanId, traceFlags } = span.spanContext()
      const fail = (code: string) =>
        span.setAttribute('error.type', code).setStatus({ code: SpanStatusCode.ERROR })
      try {
        return await act({
          traceparent: `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`,
          set: more => void span.setAttributes(more as Record<string, string>),
          fail,
        })
      } catch (error) {
        fail(codeOf(error))
        throw error
      } finally {
        span.end()
      }
    },
    // A collector that is away stops nobody.
    ping: async () => undefined,
    close: () => provider.shutdown().catch(() => undefined),
  }
}

export default defineAdapter<Tracer>({
  port: 'traces',
  scheme: 'otlp',
  ephemeral: true,
  options: {
    sample:
      'The share of traces that are kept, from 0 to 1; what a caller traces is kept as it ' +
      'says; default 1.',
  },
  open: async opening => createOtlp(opening),
})
