// How many calls a provider takes at once, over each wire that is spoken.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  eachWire,
  good,
  hear,
  onStage,
  until,
} from '../../../../test/support/model-servers/provider.ts'

const each = eachWire(test)

each("calls beyond the provider's places wait in order; who aborts leaves the line", async wire => {
  const order: string[] = []
  const reason = new Error('left')
  await onStage(
    wire,
    ({ said }) => {
      order.push(said.at(-1)!.text)
      return good
    },
    async ({ provider }) => {
      const controllers = Array.from({ length: 6 }, () => new AbortController())
      const all = controllers.map(({ signal }, n) =>
        hear(provider, { signal, messages: [{ role: 'user', content: `n${n}` }] }),
      )
      controllers[3]!.abort(reason)
      const heard = await Promise.all(all)
      assert.equal(
        heard.map(({ error }) => error),
        [undefined, undefined, undefined, reason, undefined, undefined],
      )
      assert.equal(order, ['n0', 'n1', 'n2', 'n4', 'n5'])
    },
    { options: 'concurrency=1' },
  )
  await onStage(
    wire,
    [{ hangs: true }],
    async ({ provider, server }) => {
      const controllers = Array.from({ length: 4 }, () => new AbortController())
      const all = controllers.map(({ signal }) => hear(provider, { signal }))
      await until(() => server.calls().length === 2)
      await new Promise(resolve => setTimeout(resolve, 30))
      assert.is(server.calls().length, 2)
      controllers[0]!.abort(reason)
      await until(() => server.calls().length === 3)
      for (const controller of controllers) controller.abort(reason)
      assert.equal(
        (await Promise.all(all)).map(({ error }) => error),
        [reason, reason, reason, reason],
      )
    },
    { options: 'concurrency=2' },
  )
})

test.run()
