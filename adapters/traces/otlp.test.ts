// The kit with a collector, with one that is away, and where a part of the traces is kept.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { startCollector } from '../../test/support/collector.ts'
import { tracesKit } from '../../test/conformance/traces.ts'
import { systemClock } from '../clock/system.ts'
import { createOtlp } from './otlp.ts'

const failed = 2
const tracerAt = (url: string) =>
  createOtlp({ url: new URL(`otlp:${url}`), secret: () => undefined, clock: systemClock() })

tracesKit(test, 'otlp', {
  open: async () => {
    const { url, spans, close } = await startCollector()
    return {
      tracer: tracerAt(url),
      clean: close,
      received: async () =>
        spans.map(({ name, traceId, spanId, parentSpanId, attributes, status }) => ({
          name,
          traceId,
          spanId,
          parentId: parentSpanId,
          attributes,
          isFailed: status.code === failed,
        })),
    }
  },
})
tracesKit(test, 'otlp, with its collector away', {
  open: async () => ({ tracer: tracerAt('http://127.0.0.1:9') }),
  lacks: { received: 'nothing arrives' },
})

test('otlp: of what begins here a share is kept, of what a caller traces all', async () => {
  const { url, spans, close } = await startCollector()
  const tracer = tracerAt(`${url}?sample=0`)
  try {
    await tracer.span('ours', {}, async ({ traceparent }) => assert.match(traceparent!, /-00$/))
    await tracer.span(
      'theirs',
      { parent: `00-${'4'.repeat(32)}-${'b'.repeat(16)}-01` },
      async ({ traceparent }) => assert.match(traceparent!, /-01$/),
    )
  } finally {
    await tracer.close()
    close()
  }
  assert.equal(
    spans.map(({ name }) => name),
    ['theirs'],
  )
})
test.run()
