import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { tracesKit } from '../../test/conformance/traces.ts'
import { noTraces } from './off.ts'

tracesKit(test, 'off', {
  open: async () => ({ tracer: noTraces }),
  lacks: { traced: 'nothing is traced' },
})

test('off: nothing is named that a caller could hand on', async () => {
  assert.is(
    await noTraces.span(
      'work',
      { parent: `00-${'4'.repeat(32)}-${'b'.repeat(16)}-01` },
      async ({ traceparent }) => traceparent,
    ),
    undefined,
  )
})
test.run()
