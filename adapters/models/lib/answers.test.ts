// How every provider of real models reads an answer, complete or broken, over each wire.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { ModelDelta } from '#ports/models.ts'
import {
  after,
  afterFrame,
  eachWire,
  good,
  hear,
  of,
  onStage,
  passing,
  second,
  until,
} from '../../../test/support/model-servers/provider.ts'
import type { Turn } from '../../../test/support/model-servers/turn.ts'
import { textOf } from '../../../test/conformance/models.ts'

const each = eachWire(test)

each(
  'a connection that is cut in the middle fails after what had come, and is not tried again',
  async wire => {
    await onStage(
      wire,
      [{ text: 'One two three four.', cutAt: after('two ') }],
      async ({ provider, clock, server }) => {
        const { deltas, error } = await passing(clock, hear(provider))
        assert.is(error?.code, 'MODEL_FAILED')
        assert.match(textOf(deltas), /^One /)
        assert.is(server.calls().length, 1)
      },
    )
  },
)
each('an answer that ends without a finish has failed', async wire => {
  await onStage(
    wire,
    [{ text: 'One two three', endAt: afterFrame('"three') }],
    async ({ provider, clock }) => {
      const { deltas, error } = await passing(clock, hear(provider))
      assert.is(textOf(deltas), 'One two three')
      assert.is(error?.code, 'MODEL_FAILED')
      assert.match(error!.message, 'in the middle')
    },
  )
})
each('what breaks after the finish breaks nothing', async wire => {
  await onStage(
    wire,
    [
      {
        ...good,
        cutAt: afterFrame(/"finish_reason":"stop"|response\.completed|"stop_reason":"end_turn"/),
      },
    ],
    async ({ provider, clock }) => {
      const heard = await passing(clock, hear(provider))
      assert.is(heard.error, undefined)
      assert.is(textOf(heard.deltas), 'All is well.')
      assert.equal(heard.deltas.at(-1), { type: 'finish', reason: 'stop' })
      assert.is(of(heard, 'usage').length, 1)
    },
  )
})
each(
  'an open connection is waited for only so long after the finish; an abort counts',
  async wire => {
    const turn: Turn = {
      ...good,
      stallAt: afterFrame(/"finish_reason":"stop"|response\.completed|"stop_reason":"end_turn"/),
    }
    const controller = new AbortController()
    const reason = new Error('enough')
    await onStage(wire, [turn], async ({ provider, clock, server }) => {
      const batches: (readonly ModelDelta[])[] = []
      const reading = hear(provider, {}, batches)
      await until(() => textOf(batches.flat()) === 'All is well.')
      await new Promise(resolve => setTimeout(resolve, 20))
      await clock.advance(3_600_000)
      const { error, deltas } = await reading
      assert.is(error, undefined)
      assert.equal(deltas.at(-1), { type: 'finish', reason: 'stop' })
      await until(() => server.left() === 1)
    })
    await onStage(wire, [turn], async ({ provider }) => {
      const batches: (readonly ModelDelta[])[] = []
      const reading = hear(provider, { signal: controller.signal }, batches)
      await until(() => textOf(batches.flat()) === 'All is well.')
      await new Promise(resolve => setTimeout(resolve, 20))
      controller.abort(reason)
      assert.is((await reading).error, reason)
    })
  },
)
each(
  'a line that is no JSON, and one of an unknown shape, end the answer after what had come',
  async wire => {
    for (const frame of ['event: x\ndata: {"broken\n\n', 'event: x\ndata: null\n\n']) {
      await onStage(
        wire,
        [{ text: 'One two three four.', inject: { before: second[wire], frame } }],
        async ({ provider, clock }) => {
          const { deltas, error } = await passing(clock, hear(provider))
          assert.is(error?.code, 'MODEL_FAILED')
          assert.match(error!.message, 'cannot be read')
          assert.match(textOf(deltas), /^One /)
        },
      )
    }
  },
)
each('an error in the middle of a stream is told apart by its kind', async wire => {
  for (const [type, code] of [
    ['overloaded_error', 'MODEL_FAILED'],
    ['invalid_request_error', 'MODEL_REFUSED'],
  ] as const) {
    const data =
      wire === 'messages'
        ? { type: 'error', error: { type, message: 'my secret prompt' } }
        : { error: { type, message: 'my secret prompt' } }
    await onStage(
      wire,
      [
        {
          text: 'One two three four.',
          inject: {
            before: second[wire],
            frame: `event: error\ndata: ${JSON.stringify(data)}\n\n`,
          },
        },
      ],
      async ({ provider, clock }) => {
        const { error, deltas } = await passing(clock, hear(provider))
        assert.is(error?.code, code)
        assert.match(error!.message, type)
        assert.not.match(error!.message, 'secret')
        assert.match(textOf(deltas), /^One /)
      },
    )
  }
})
each('what one read of the wire brings is one batch', async wire => {
  await onStage(
    wire,
    [{ text: Array.from({ length: 200 }, (_, n) => `w${n} `).join(''), whole: true }],
    async ({ provider, clock }) => {
      const { batches, deltas } = await passing(clock, hear(provider))
      assert.ok(deltas.length >= 200)
      assert.ok(batches.length <= 12, `${batches.length} batches`)
    },
  )
})
each(
  'an answer without a count is measured; a count that is no number is not believed',
  async wire => {
    await onStage(wire, [{ text: 'a'.repeat(400), usage: false }], async ({ provider, clock }) => {
      const heard = await passing(
        clock,
        hear(provider, { messages: [{ role: 'user', content: 'b'.repeat(80) }] }),
      )
      assert.equal(heard.deltas.slice(-2), [
        { type: 'usage', usage: { inputTokens: 20, outputTokens: 100 } },
        { type: 'finish', reason: 'stop' },
      ])
    })
    await onStage(
      wire,
      [{ text: 'a'.repeat(400), usage: { input: -7, output: 1.5 } }],
      async ({ provider, clock }) => {
        const [usage] = of(await passing(clock, hear(provider)), 'usage')
        assert.is(usage!.usage.outputTokens, 100)
        assert.ok(usage!.usage.inputTokens > 0)
      },
    )
    await onStage(
      wire,
      [{ text: 'x', usage: { input: 70, output: 9 } }],
      async ({ provider, clock }) => {
        assert.equal(
          of(await passing(clock, hear(provider)), 'usage').map(({ usage }) => usage),
          [{ inputTokens: 70, outputTokens: 9 }],
        )
      },
    )
  },
)
each('an answer says why it ended', async wire => {
  for (const [turn, reason] of [
    [{ text: 'x', finish: 'length' }, 'length'],
    [{ text: 'x', finish: 'filtered' }, 'filtered'],
    [{ refusal: 'I cannot.' }, 'filtered'],
    [{ text: 'x' }, 'stop'],
  ] as const) {
    await onStage(wire, [turn], async ({ provider, clock }) => {
      const heard = await passing(clock, hear(provider))
      assert.equal(heard.deltas.at(-1), { type: 'finish', reason })
      assert.is(textOf(heard.deltas), 'refusal' in turn ? 'I cannot.' : 'x')
    })
  }
})
each('deliberation comes apart from the answer', async wire => {
  await onStage(
    wire,
    [{ reasoning: 'First I think.\n\nThen more.', text: 'Done.' }],
    async ({ provider, clock }) => {
      const heard = await passing(clock, hear(provider, { reasoning: true }))
      assert.is(
        of(heard, 'reasoning')
          .map(({ text }) => text)
          .join(''),
        'First I think.\n\nThen more.',
      )
      assert.is(textOf(heard.deltas), 'Done.')
    },
    { options: 'reasoning=1' },
  )
})
each('several calls at once come each whole, opened before', async wire => {
  const calls = [
    { id: 'c1', name: 'add', arguments: '{"a":1,"b":"long enough to come in many pieces"}' },
    { id: 'c2', name: 'look_up', arguments: '' },
    { id: 'c1', name: 'add', arguments: '{"a":3}' },
  ]
  await onStage(wire, [{ text: 'Wait.', calls }], async ({ provider, clock }) => {
    const heard = await passing(
      clock,
      hear(provider, { tools: [{ name: 'add', description: '', parameters: { type: 'object' } }] }),
    )
    const whole = of(heard, 'tool_call').map(({ call }) => call)
    const opened = of(heard, 'tool_open')
    assert.equal(
      whole.map(call => [call.name, call.arguments]),
      [
        ['add', { a: 1, b: 'long enough to come in many pieces' }],
        ['look_up', {}],
        ['add', { a: 3 }],
      ],
    )
    assert.equal(
      opened.map(({ id, name }) => [id, name]),
      whole.map(({ id, name }) => [id, name]),
    )
    assert.is(
      new Set(whole.map(({ id }) => id)).size,
      3,
      'an id that comes twice is not taken twice',
    )
    for (const [n, open] of opened.entries())
      assert.ok(heard.deltas.indexOf(open) < heard.deltas.indexOf(of(heard, 'tool_call')[n]!))
    assert.equal(heard.deltas.at(-1), { type: 'finish', reason: 'tool_calls' })
  })
})
each('a call that breaks off in its arguments is opened and never made', async wire => {
  for (const how of ['cutAt', 'endAt'] as const) {
    await onStage(
      wire,
      [
        {
          text: 'Wait.',
          calls: [{ name: 'add', arguments: '{"a":1,"b":"and so on and on"}' }],
          [how]: afterFrame(/\{\\"a/),
        },
      ],
      async ({ provider, clock, server }) => {
        const heard = await passing(clock, hear(provider))
        assert.is(heard.error?.code, 'MODEL_FAILED')
        assert.equal(
          of(heard, 'tool_open').map(({ name }) => name),
          ['add'],
        )
        assert.is(of(heard, 'tool_call').length, 0)
        assert.is(server.calls().length, 1)
      },
    )
  }
})
each('arguments that are no JSON at a clean end are handed on as they came', async wire => {
  await onStage(
    wire,
    [{ calls: [{ name: 'add', arguments: '{"a":1' }] }],
    async ({ provider, clock }) => {
      const heard = await passing(clock, hear(provider))
      assert.is(heard.error, undefined)
      assert.equal(
        of(heard, 'tool_call').map(({ call }) => call.arguments),
        ['{"a":1'],
      )
    },
  )
})
test.run()
