// Tool calls, results and questions that are too large or too many for one append, over the API.
import { Type as t } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { dataOf, endEngines, lasting, startEngine } from '../../../test/support/engine.ts'
import { called, calls, lastWords, resultsIn, says } from '../../../test/support/scripted-model.ts'
import type { Tool } from '../api.ts'
import { jsonBytes } from './bytes.ts'
import { ToolInvocations } from '../tools/audit-log.ts'

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
    const [what, size] = lastWords(request).split(' ')
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

test.after(endEngines)
test.run()
