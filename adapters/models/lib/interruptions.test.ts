// Calls that end early, over each wire that is spoken: by silence, an abort, a reader that leaves,
// or the close.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { ModelDelta } from '#ports/models.ts'
import {
  afterFrame,
  eachWire,
  good,
  hear,
  onStage,
  passing,
  until,
} from '../../../test/support/model-servers/provider.ts'
import type { Turn } from '../../../test/support/model-servers/turn.ts'
import { textOf } from '../../../test/conformance/models.ts'

const each = eachWire(test)

each(
  'what is under way ends when the provider is closed, what waits for a place too',
  async wire => {
    await onStage(
      wire,
      [{ hangs: true }],
      async ({ provider, server, clock }) => {
        const all = [hear(provider), hear(provider)]
        await until(() => server.calls().length === 1)
        await provider.close()
        assert.equal(
          (await Promise.all(all)).map(({ error }) => error?.code),
          ['UNAVAILABLE', 'UNAVAILABLE'],
        )
        await until(() => server.left() === 1)
        assert.is(clock.sleeping(), 0)
      },
      { options: 'concurrency=1' },
    )
  },
)
each(
  'silence is cut off: before the first byte, where it is tried again, and after it',
  async wire => {
    await onStage(wire, [{ hangs: true }, good], async ({ provider, clock, server, logged }) => {
      const reading = hear(provider)
      await until(() => server.calls().length === 1)
      await clock.advance(3_599_999)
      assert.is(server.left(), 0)
      await clock.advance(1)
      const heard = await passing(clock, reading)
      assert.is(textOf(heard.deltas), 'All is well.')
      assert.match(logged[0]!, 'was silent for 3600000 ms')
      await until(() => server.left() === 1)
    })
    await onStage(
      wire,
      [{ text: 'One two three.', stallAt: afterFrame('One ') }],
      async ({ provider, clock, server }) => {
        const batches: (readonly ModelDelta[])[] = []
        const reading = hear(provider, {}, batches)
        await until(() => textOf(batches.flat()) === 'One ')
        await clock.advance(3_600_000)
        const { error } = await reading
        assert.is(error?.code, 'MODEL_FAILED')
        assert.match(error!.message, 'was silent for 3600000 ms')
        await until(() => server.left() === 1)
      },
    )
  },
)
each("an abort throws the signal's reason and ends the request at every stage", async wire => {
  const reason = new Error('enough')
  for (const turn of [
    { hangs: true },
    { text: 'One two three.', stallAt: afterFrame('One ') },
    { status: 500 },
  ] as Turn[]) {
    await onStage(wire, [turn], async ({ provider, clock, server }) => {
      const controller = new AbortController()
      const reading = hear(provider, { signal: controller.signal })
      await until(() => server.calls().length === 1 && clock.sleeping() > 0)
      await new Promise(resolve => setTimeout(resolve, 20))
      controller.abort(reason)
      assert.is((await reading).error, reason)
      await until(() => server.open() === 0)
      if (turn.status === undefined) await until(() => server.left() === 1)
      assert.is(server.calls().length, 1)
      assert.is(clock.sleeping(), 0, 'nothing waits any more')
    })
  }
})
each('a reader that leaves ends the request', async wire => {
  await onStage(
    wire,
    [{ text: 'One two three.', stallAt: afterFrame('One ') }],
    async ({ provider, server }) => {
      for await (const batch of provider.stream({
        model: 'm',
        messages: [{ role: 'user', content: 'x' }],
        signal: new AbortController().signal,
      }))
        if (textOf(batch) !== '') break
      await until(() => server.left() === 1)
    },
  )
})

test.run()
