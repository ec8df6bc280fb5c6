// Large texts and calls, over the API. Limits of stores are in bytes. A text or call beyond them
// fails by itself.
import { Type as t } from 'typebox'
import fc from 'fast-check'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { dataOf, endEngines, lasting, saidIn, startEngine } from '../../../test/support/engine.ts'
import {
  called,
  calls,
  ends,
  lastWords,
  resultsIn,
  says,
  text,
} from '../../../test/support/scripted-model.ts'
import type { Tool } from '../api.ts'
import { clip, depthOf, jsonBytes, piecesOf } from './bytes.ts'
import { ToolInvocations } from '../tools/audit-log.ts'
import { ending, event, leaseTaken } from './records.ts'

const wide = '漢'
let bodies = 0
const tools: readonly Tool[] = [
  {
    name: 'read',
    description: 'Reads.',
    parameters: t.Object({}),
    effect: 'none',
    run: async () => {
      bodies++
      return { content: wide.repeat(16_000) }
    },
  },
  {
    name: 'write',
    description: 'Writes.',
    parameters: t.Object({}),
    effect: 'keyed',
    run: () => {
      bodies++
      return { content: 'written' }
    },
  },
  {
    name: 'curious',
    description: 'Asks.',
    parameters: t.Object({}),
    effect: 'none',
    run: () => ({
      ask: {
        kind: 'user_choice',
        question: wide.repeat(100_000),
        options: [],
        multiple: false,
        free: true,
      },
    }),
  },
]
const deep = (levels: number) => JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`)
const engine = await startEngine(
  request => {
    const words = lastWords(request)
    const [what, size] = words.split(' ')
    if (resultsIn(request).length > 0) return says('answered')
    if (what === 'many')
      return calls(...Array.from({ length: 40 }, (_, i) => called(`c${i}`, 'read')))
    if (what === 'large')
      return calls(
        called('c0', 'write', { content: 'x'.repeat(Number(size)) }),
        called('c1', 'write'),
      )
    if (what === 'deep')
      return calls(called('c0', 'write', deep(Number(size))), called('c1', 'write'))
    if (what === 'ask') return calls(called('c0', 'curious'))
    if (what === 'long') return [[text(wide.repeat(Number(size))), ...ends()]]
    return says('hello')
  },
  { tools, model: { contextTokens: 4_000_000, outputTokensMax: 1_000_000 }, credits: 1_000_000 },
)
const asked = async (message: string) => {
  bodies = 0
  const before = engine.model.requests.length
  const { run_id: id } = await engine.chat(message)
  const list = await engine.read(id)
  return {
    id,
    list,
    models: engine.model.requests.length - before,
    results: dataOf(list, 'tool_result').map(
      ({ status, content }) => [status, String(content)] as const,
    ),
  }
}

test('forty results at once are split over appends, and nothing runs or asks twice', async () => {
  const { list, models, results } = await asked('many')
  assert.equal([models, bodies, results.length, list.at(-1)!.data['status']], [2, 40, 40, 'done'])
  const { storage, eventlog } = lasting()
  const sizes: number[] = []
  const slow = {
    ...eventlog,
    append: async (...[stream, events, options]: Parameters<typeof eventlog.append>) => {
      sizes.push(jsonBytes(events))
      await new Promise(resolve => setTimeout(resolve, 15))
      return eventlog.append(stream, events, options)
    },
  }
  const second = await startEngine(
    request =>
      resultsIn(request).length > 0
        ? says('answered')
        : calls(...Array.from({ length: 40 }, (_, i) => called(`c${i}`, 'read'))),
    {
      tools,
      given: { storage, eventlog: slow },
      credits: 1_000_000,
      model: { contextTokens: 4_000_000 },
    },
  )
  bodies = 0
  assert.is((await second.answered('many')).at(-1)!.event, 'done')
  assert.is(bodies, 40)
  assert.ok(
    Math.max(...sizes) <= eventlog.limits.appendBytesMax && Math.max(...sizes) > 100_000,
    `appends of up to ${Math.max(...sizes)} bytes`,
  )
  await second.stop()
})

test('arguments too large or too deep fail only that call, and the model is told', async () => {
  for (const [message, why] of [
    ['large 1100000', /take 1100014 bytes, more than the 262144/],
    ['deep 70', /nested deeper than 64 levels/],
    ['deep 100000', /nested deeper than 64 levels/],
  ] as const) {
    const { id, list, models, results } = await asked(message)
    assert.equal(
      [models, bodies, list.at(-1)!.data['status'], results.map(([status]) => status)],
      [2, 1, 'done', ['failed', 'ok']],
      message,
    )
    assert.match(results[0]![1], why)
    assert.match(resultsIn(engine.model.requests.at(-1)!)[0]!, why)
    assert.equal(
      dataOf(list, 'tool_call').map(({ call_id: call, arguments: args }) => [call, args]),
      [
        ['c0', {}],
        ['c1', {}],
      ],
    )
    const { items } = await engine.storage.find(ToolInvocations, { where: { runId: id } })
    assert.equal(items.map(({ status }) => status).sort(), ['failed', 'ok'])
  }
})

test('a question that is too large is an error of its call', async () => {
  const { results, list } = await asked('ask')
  assert.equal([results[0]![0], list.at(-1)!.data['status']], ['failed', 'done'])
  assert.match(results[0]![1], /a question of 30\d{4} bytes, more than 262144/)
})

test('what a provider sends at once is shown in pieces that fit', async () => {
  const { list } = await asked('long 700000')
  assert.is(saidIn(list), wide.repeat(700_000))
  assert.ok(dataOf(list, 'token').every(one => jsonBytes(one) < 66_000))
})

test('a long message and a long answer are kept whole beside the document', async () => {
  const kept = () =>
    engine.eventlog
      .streams({ limit: 1000 })
      .then(names => names.filter(name => name.includes('/text:')).length)
  const before = await kept()
  const message = `long 290000 ${wide.repeat(180_000)}`
  const { run_id: id, session_id: sessionId } = await engine.chat(message)
  const token = engine.who.token
  assert.is((await engine.read(id)).at(-1)!.data['status'], 'done')
  await engine.closed(id)
  const run = await engine.run(id)
  const answer = wide.repeat(290_000)
  assert.ok(jsonBytes(run) < 140_000, `the document takes ${jsonBytes(run)} bytes`)
  const messages = async (session: string) =>
    (
      (await engine.call('GET', `/sessions/${session}/messages`, { token })).body as {
        items: { content: string }[]
      }
    ).items.map(({ content }) => content)
  assert.equal(
    (await messages(sessionId)).map(({ length }) => length),
    [message.length, answer.length],
  )
  assert.ok((await messages(sessionId))[1] === answer)
  await engine.answered('and now?', { session_id: sessionId })
  assert.equal(
    engine.model.requests
      .at(-1)!
      .messages.slice(1)
      .map(({ content }) => content.length),
    [message.length, answer.length, 8],
  )
  const fork = (await engine.call('POST', `/sessions/${sessionId}/branch`, { token, body: {} }))
    .body as { id: string }
  assert.equal(
    (await messages(fork.id)).map(({ length }) => length),
    [message.length, answer.length, 8, 5],
  )
  assert.equal(
    ((await engine.kernel.commands().get('verify')!.run({})) as { told: unknown[] }).told,
    [],
  )
  assert.is((await kept()) - before, 2, 'a fork shares them')
  assert.is((await engine.call('DELETE', `/sessions/${sessionId}`, { token })).status, 204)
  assert.is((await kept()) - before, 2, 'and inherits them')
  assert.equal(
    (await messages(fork.id)).map(({ length }) => length),
    [message.length, answer.length, 8, 5],
  )
  assert.is((await engine.call('DELETE', `/sessions/${fork.id}`, { token })).status, 204)
  assert.is(await kept(), before)
})

test('control characters take six bytes each; a refused message leaves nothing', async () => {
  const message = '\u0001'.repeat(100_000)
  assert.is((await engine.answered(message)).at(-1)!.data['status'], 'done')
  const poor = await engine.account(0)
  const before = (await engine.eventlog.streams({ limit: 1000 })).length
  assert.is((await engine.start(message, {}, poor)).status, 402)
  assert.is((await engine.eventlog.streams({ limit: 1000 })).length, before)
})

test('of a conversation of long messages no more is read than is told or fits', async () => {
  const { storage, eventlog } = lasting()
  const looked = new Set<string>()
  const read = (...[stream, options]: Parameters<typeof eventlog.read>) => {
    if (stream.includes('text:')) looked.add(stream)
    return eventlog.read(stream, options)
  }
  const counting = async <T>(act: () => Promise<T>) => {
    looked.clear()
    const value = await act()
    return { value, looked: looked.size }
  }
  const own = await startEngine(() => says('hello'), {
    model: { contextTokens: 4_000_000 },
    given: { storage, eventlog: { ...eventlog, read } },
    credits: 1_000_000,
    env: { RUNS_PAGE_CHARS_MAX: '2000000', RUNS_SEARCH_WAIT_MS: '600000' },
  })
  const call = async (method: string, path: string, body?: object) =>
    (await own.call(method, path, { token: own.who.token, ...(body ? { body } : {}) })).body as {
      id: string
      items: { content: string }[]
      next_cursor?: string
    }
  let session: string | undefined
  const say = async () => {
    const started = await own.chat('x'.repeat(900_000), session ? { session_id: session } : {})
    session = started.session_id
    await own.read(started.run_id)
    await own.closed(started.run_id)
  }
  for (let i = 0; i < 9; i++) await say()
  const page = (cursor?: string) =>
    call('GET', `/sessions/${session}/messages?limit=200${cursor ? `&cursor=${cursor}` : ''}`)
  const first = await counting(() => page())
  const contents = first.value.items.map(({ content }) => content.length)
  assert.equal(contents, [900_000, 5, 900_000, 5])
  assert.ok(first.looked <= 4, `${first.looked} long texts were read for a page that holds two`)
  let told = contents.length
  for (let next = first.value.next_cursor; next; ) {
    const { items, next_cursor: further } = await page(next)
    told += items.length
    next = further
  }
  assert.is(told, 18, 'every message is on some page')
  assert.is(
    (await counting(() => call('POST', `/sessions/${session}/branch`, {}))).looked,
    0,
    'a fork shares its texts unread',
  )
  const next = await counting(say)
  assert.ok(next.looked <= 5, `${next.looked} long texts were read for a history that holds two`)
})

test('verify tells of a run that has ended and was never closed', async () => {
  const idle = await startEngine(() => says('x'), { env: { RUNS_SWEEP_MS: '600000' } })
  const usage = { inputTokens: 0, outputTokens: 0 }
  const records = [
    leaseTaken(1),
    ending({ terminal: { type: 'done', status: 'done' }, usage, charged: false }),
    event('usage', {
      input_tokens: 0,
      output_tokens: 0,
      total_tokens: 0,
      credits: 0,
      model: 'puppet',
      model_calls: 0,
    }),
    event('done', { status: 'done', session_id: crypto.randomUUID() }),
  ]
  const run = await idle.left(records)
  const { told } = (await idle.kernel.commands().get('verify')!.run({})) as {
    told: { run_id: string; what: string }[]
  }
  assert.ok(
    told.some(
      ({ run_id: id, what }) => id === run.id && what === 'it ended, and it was never closed',
    ),
    JSON.stringify(told),
  )
  await idle.stop()
})

const texts = fc
  .array(fc.constantFrom('a', '"', '\\', '\n', '\u0001', 'é', wide, '😀', '\ud83d', '\ude00'), {
    maxLength: 60,
    size: 'max',
  })
  .map(list => list.join(''))
test('pieces are the text again, none is larger than it may be, and no pair is cut', () => {
  fc.assert(
    fc.property(texts, fc.integer({ min: 6, max: 40 }), (whole, max) => {
      const pieces = piecesOf(whole, max)
      assert.is(pieces.join(''), whole)
      for (const piece of pieces) assert.ok(jsonBytes(piece) - 2 <= max)
      const [first = ''] = pieces
      assert.is(clip(whole, max), first)
      for (const [i, piece] of pieces.entries())
        assert.not.ok(
          /[\ud800-\udbff]$/.test(piece) && /^[\udc00-\udfff]/.test(pieces[i + 1] ?? ''),
        )
    }),
  )
})
test('depth is counted without recursion', () => {
  assert.equal([1, [], {}, [[]], { a: [1] }, deep(5)].map(depthOf), [0, 1, 1, 2, 2, 5])
  assert.is(depthOf(deep(200_000)), 200_000)
})

test.after(endEngines)
test.run()
