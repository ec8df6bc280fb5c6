// Answers in the background, which go on without a reader.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { ModelDelta } from '#ports/models.ts'
import { textOf } from '../../../test/conformance/models.ts'
import {
  hear,
  leaping,
  onStage,
  passing,
  until,
} from '../../../test/support/model-servers/provider.ts'

test('an answer in the background can be resumed, but never in the middle of a call', async () => {
  const calls = [
    { id: 'c1', name: 'add', arguments: '{"a":1}' },
    { id: 'c2', name: 'add', arguments: '{"a":2}' },
  ]
  await onStage(
    'responses',
    [{ text: 'Let me add.', calls }],
    async ({ provider, server }) => {
      const { deltas } = await hear(provider)
      const kept: ModelDelta[] = []
      let openCalls = 0
      let resumed = 0
      for (const delta of deltas) {
        if (delta.type === 'tool_open') openCalls++
        if (delta.type === 'tool_call') openCalls--
        if (delta.type !== 'checkpoint') {
          kept.push(delta)
          continue
        }
        assert.is(openCalls, 0)
        const rest = (await hear(provider, { resume: delta.checkpoint })).deltas
        assert.equal(
          [...kept, ...rest].filter(({ type }) => type !== 'checkpoint'),
          deltas.filter(({ type }) => type !== 'checkpoint'),
        )
        resumed++
      }
      assert.ok(resumed > 5)
      assert.is(server.calls().length, 1, 'the answer was asked for once')
    },
    { options: 'background=1', parts: { clock: leaping() } },
  )
})
test('checkpoints are bounded in rate', async () => {
  await onStage(
    'responses',
    [{ text: Array.from({ length: 50 }, (_, n) => `w${n} `).join('') }],
    async ({ provider, clock }) => {
      const { deltas } = await hear(provider)
      assert.equal(
        deltas
          .filter(({ type }) => type === 'checkpoint')
          .map(delta => delta.type === 'checkpoint' && delta.checkpoint),
        [{ response: 'resp_1', at: 0 }],
      )
      assert.is(clock.sleeping(), 0)
    },
    { options: 'background=1' },
  )
})
test('who cancels ends the answer there too; who only goes away does not', async () => {
  for (const [reason, cancelled] of [
    ['cancelled', ['resp_1']],
    ['handover', []],
    [new Error('silent'), []],
  ] as const) {
    await onStage(
      'responses',
      [{ text: 'One two three.', stallAt: body => body.indexOf('\n\n', body.indexOf('One ')) + 2 }],
      async ({ provider, server }) => {
        const controller = new AbortController()
        const batches: (readonly ModelDelta[])[] = []
        const reading = hear(provider, { signal: controller.signal }, batches)
        await until(() => textOf(batches.flat()) !== '')
        controller.abort(reason)
        assert.is((await reading).error, reason)
        await until(() => server.left() === 1)
        if (cancelled.length > 0) await until(() => server.cancelled.length > 0)
        await new Promise(resolve => setTimeout(resolve, 20))
        assert.equal(server.cancelled, [...cancelled])
      },
      { options: 'background=1' },
    )
  }
})
test('an answer that the provider did not keep is refused; a failed one has failed', async () => {
  await onStage(
    'responses',
    [{ text: 'One', finish: 'error' }],
    async ({ provider, clock }) => {
      assert.match(
        (await hear(provider, { resume: { response: 'resp_other', at: 3 } })).error!.message,
        /refused.*404/,
      )
      assert.match((await passing(clock, hear(provider))).error!.message, /failed: .*server_error/)
    },
    { options: 'background=1' },
  )
})

test.run()
