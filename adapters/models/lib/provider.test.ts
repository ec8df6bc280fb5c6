// How every provider of real models is asked: tries, limits, places, aborts, health and keys, over
// each wire that is spoken.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { ModelDelta } from '#ports/models.ts'
import {
  afterFrame,
  eachWire,
  good,
  hear,
  onStage,
  openAt,
  passing,
  second,
  until,
} from '../../../test/support/model-servers/provider.ts'
import { startModelServer } from '../../../test/support/model-servers/server.ts'
import type { Turn } from '../../../test/support/model-servers/turn.ts'
import { textOf } from '../../../test/conformance/models.ts'
import { refuses } from '../../../test/conformance/runner.ts'
import { manualClock } from '../../clock/manual.ts'

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
each('a health check asks for the models with the key, and not again at once', async wire => {
  const secrets: Record<string, string> = { RIGHT: 'right-key', WRONG: 'wrong-key-4711' }
  const server = await startModelServer(wire, { key: 'right-key' })
  const clock = manualClock()
  const open = (key: string) =>
    openAt(wire, server.base, `key=${key}`, { clock, secret: name => secrets[name] })
  const right = await open('RIGHT')
  const wrong = await open('WRONG')
  for (let n = 0; n < 5; n++) await right.ping()
  await clock.advance(9999)
  await right.ping()
  assert.is(server.received.length, 1)
  await clock.advance(1)
  await right.ping()
  assert.is(server.received.length, 2)
  const refused = await refuses('UNAVAILABLE', () => wrong.ping())
  assert.match(refused, /compatible.*answered 401.*key is missing or wrong/)
  assert.not.match(refused, '4711')
  await server.stop()
  await clock.advance(20_000)
  assert.match(await refuses('UNAVAILABLE', () => right.ping()), /connection to .* failed/)
  await Promise.all([right.close(), wrong.close()])
})
each('a key comes out nowhere: no log, no error, no catalogue, no other header', async wire => {
  const key = 'sk-planted-0123456789-abcdef'
  const out: string[] = []
  const echoing: readonly Turn[] = [
    { status: 401, error: { type: key, code: key, message: `wrong key ${key}` } },
    { status: 500, body: `<html>${key}</html>` },
    {
      text: 'One two three.',
      inject: {
        before: second[wire],
        frame: `event: error\ndata: {"error":{"type":"${key}","message":"${key}"}}\n\n`,
      },
    },
    { status: 302, headers: { location: `http://${key}@127.0.0.1:1/` } },
  ]
  for (const turn of echoing) {
    await onStage(
      wire,
      [turn],
      async ({ provider, clock, logged, server }) => {
        const heard = await passing(clock, hear(provider))
        out.push(
          JSON.stringify(heard.deltas),
          String(heard.error!.stack),
          JSON.stringify(heard.error),
          String(heard.error!.cause),
          ...logged,
          JSON.stringify(await provider.catalogue()),
        )
        for (const { headers } of server.received) {
          const { authorization, 'x-api-key': own, ...rest } = headers
          assert.ok([authorization, own].join('').includes(key))
          assert.not.match(JSON.stringify(rest), key)
          assert.not.match(JSON.stringify(rest), 'stainless')
        }
      },
      { options: 'key=PLANTED', parts: { secret: name => (name === 'PLANTED' ? key : undefined) } },
    )
  }
  assert.ok(out.join('').length > 500)
  assert.not.ok(out.join('').includes('planted'))
})
each('without a key none is sent', async wire => {
  await onStage(wire, [good], async ({ provider, server, clock }) => {
    await passing(clock, hear(provider))
    const { authorization, 'x-api-key': key } = server.received[0]!.headers
    assert.equal([authorization, key], [undefined, undefined])
  })
})
test.run()
