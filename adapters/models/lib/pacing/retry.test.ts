// Which failures of a call are tried again, over each wire that is spoken.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  eachWire,
  good,
  hear,
  onStage,
  passing,
  until,
} from '../../../../test/support/model-servers/provider.ts'
import { textOf } from '../../../../test/conformance/models.ts'

const each = eachWire(test)
const failure = { type: 'api_error', message: 'It went wrong.' }

each('what fails before anything was handed out is tried again, three times in all', async wire => {
  await onStage(
    wire,
    [{ status: 500 }, { cutAt: () => 5, ...good }, good],
    async ({ provider, clock, server }) => {
      const heard = await passing(clock, hear(provider))
      assert.is(textOf(heard.deltas), 'All is well.')
      assert.is(server.calls().length, 3)
    },
  )
  await onStage(
    wire,
    [{ status: 503, error: failure }],
    async ({ provider, clock, server, logged }) => {
      const began = clock.now()
      const { error, deltas } = await passing(clock, hear(provider))
      assert.is(error?.code, 'MODEL_FAILED')
      assert.match(error!.message, /answered 503 \(api_error\)/)
      assert.is(deltas.length, 0)
      assert.is(server.calls().length, 3)
      assert.ok(clock.now() - began >= 750, 'there were two pauses, the second longer')
      assert.is(logged.filter(line => line.includes('models.call_failed')).length, 3)
    },
  )
})
each('what would be refused again is refused at once, in our words', async wire => {
  for (const [status, why] of [
    [400, 'not valid'],
    [401, 'key is missing or wrong'],
    [402, 'no credit'],
    [403, 'does not allow'],
    [404, 'no such model'],
    [413, 'too long'],
    [422, 'not valid'],
    [418, 'not taken'],
    [302, 'redirects'],
  ] as const) {
    await onStage(
      wire,
      [
        {
          status,
          error: { type: 'some_error', message: 'You said: my secret prompt, with sk-verysecret' },
          headers: { location: '/elsewhere' },
        },
      ],
      async ({ provider, clock, server, logged }) => {
        const { error } = await passing(
          clock,
          hear(provider, { messages: [{ role: 'user', content: 'my secret prompt' }] }),
        )
        assert.is(error?.code, 'MODEL_REFUSED', String(status))
        assert.ok(
          error!.message.includes(String(status)) && error!.message.includes(why),
          error!.message,
        )
        assert.is(server.received.length, 1)
        assert.not.match(error!.message + logged.join(''), /secret/)
      },
    )
  }
  await onStage(
    wire,
    [
      {
        status: 400,
        error: {
          type: 'invalid_request_error',
          message: 'prompt is too long: 300000 tokens > 200000 maximum',
        },
      },
    ],
    async ({ provider }) => {
      assert.match((await hear(provider)).error!.message, /too long/)
    },
  )
  await onStage(wire, [{ status: 400, body: 'x'.repeat(3_000_000) }], async ({ provider }) => {
    assert.is(
      (await hear(provider)).error!.code,
      'MODEL_REFUSED',
      'a refusal that does not end is cut off',
    )
  })
})
each('what passes is tried again: time-outs, conflicts, rate limits, overload', async wire => {
  for (const status of [408, 409, 425, 429, 500, 502, 529]) {
    await onStage(wire, [{ status, error: failure }], async ({ provider, clock, server }) => {
      const { error } = await passing(clock, hear(provider))
      assert.is(error?.code, 'MODEL_FAILED', String(status))
      assert.is(server.calls().length, 3)
    })
  }
})
each('a used-up quota is no rate limit', async wire => {
  if (wire === 'messages') return
  await onStage(
    wire,
    [
      {
        status: 429,
        error: { type: 'insufficient_quota', code: 'insufficient_quota', message: 'x' },
      },
    ],
    async ({ provider, server }) => {
      assert.is((await hear(provider)).error?.code, 'MODEL_REFUSED')
      assert.is(server.calls().length, 1)
    },
  )
})
each("the provider says how long to wait; a long wait is the caller's to decide on", async wire => {
  await onStage(
    wire,
    [{ status: 429, headers: { 'retry-after': '12' } }, good],
    async ({ provider, clock, server, logged }) => {
      const reading = hear(provider)
      await until(() => logged.length === 1)
      await clock.advance(11_999)
      await new Promise(resolve => setTimeout(resolve, 20))
      assert.is(server.calls().length, 1)
      await clock.advance(1)
      assert.is(textOf((await reading).deltas), 'All is well.')
      assert.is(server.calls().length, 2)
    },
  )
  await onStage(
    wire,
    [{ status: 429, headers: { 'retry-after': '60' } }, good],
    async ({ provider, server }) => {
      const { error } = await hear(provider)
      assert.is(error?.code, 'MODEL_FAILED')
      assert.is(error?.retryAfterMs, 60_000)
      assert.is(server.calls().length, 1)
    },
  )
})

test.run()
