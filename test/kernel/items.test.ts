// What plugins contribute to points is held against the point's rules before anybody meets it.
import { Type as t } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, into, point, type Plugin } from '#kernel'
import { loadPlugins } from '../../kernel/loading/sources.ts'
import { Agents, Tools } from '../../plugins/runs/api.ts'
import { endServers, readEvents, startServer } from '../conformance/plugin/server.ts'

const sound = {
  name: 'look',
  description: 'Looks.',
  parameters: t.Object({}),
  effect: 'none',
  run: () => ({ content: 'seen' }),
}
const bringing = (name: string, tool: object): Plugin =>
  definePlugin({
    name,
    version: '1.0.0',
    kernel: '^1.0.0',
    contributes: [into(Tools, () => ({ ...sound, ...tool }) as never)],
  })

test('an item that does not fit is refused by name, and the old set goes on serving', async () => {
  const all = await loadPlugins()
  const server = await startServer({ plugins: [...all, bringing('guest', {})] })
  const { token } = await server.account()
  const before = server.kernel.host.plugins()
  const refusal = async (...plugins: Plugin[]) =>
    server.kernel.applyPlugins([...all, ...plugins]).then(
      () => 'it serves',
      (error: Error) => error.message,
    )
  const agent = definePlugin({
    name: 'second',
    version: '1.0.0',
    kernel: '^1.0.0',
    contributes: [into(Agents, () => ({ key: 'main', name: 'Another', instruction: 'Be it.' }))],
  })
  for (const [plugins, sentence] of [
    [
      [bringing('guest', {}), bringing('second', {})],
      /^The name "look" at point tools is claimed by guest and second\.$/,
    ],
    [
      [bringing('second', { name: 'calculator' })],
      /^The name "calculator" at point tools is claimed by tools and second\.$/,
    ],
    [[agent], /^The key "main" at point agents is claimed by runs and second\.$/],
    [
      [bringing('second', { run: undefined })],
      /^What second contributes to point tools does not fit: run is no function\.$/,
    ],
    [[bringing('second', { probe: 'text' })], /second .* probe is no function/],
    [[bringing('second', { name: 'Look At' })], /second .* name.*pattern/],
    [
      [bringing('second', { name: 'report_failure' })],
      /the name "report_failure" is the platform's own/,
    ],
    [[bringing('second', { description: undefined })], /second .* description.* is required/],
    [
      [
        bringing('second', {
          parameters: { type: 'object', properties: { a: { type: 'nothing' } } },
        }),
      ],
      /second .* parameters is no valid JSON Schema: /,
    ],
    [[bringing('second', { parameters: { type: 'string' } })], /second .* parameters\.type/],
    [
      [bringing('second', { effect: 'twice' })],
      /second .* effect: must be one of none, keyed, once/,
    ],
    [[bringing('second', { timeoutMs: '5' })], /second .* timeoutMs/],
  ] as const)
    assert.match(await refusal(...plugins), sentence)
  assert.equal(server.kernel.host.plugins(), before)
  const { body } = await server.call('POST', '/chat', {
    token,
    body: { message: '[[tool=look {}]]' },
  })
  assert.is(
    (await readEvents(await server.stream(token, (body as { run_id: string }).run_id))).find(
      ({ event }) => event === 'tool_result',
    )!.data['content'],
    'seen',
  )
  await server.stop()
})

test('an owner whose rules have changed has every item checked anew', async () => {
  const pointWith = (minLength: number) =>
    point<{ word: string }>('words', {
      rules: { fields: t.Object({ word: t.String({ minLength }) }) },
    })
  const owner = (minLength: number): Plugin =>
    definePlugin({
      name: 'owner',
      version: '1.0.0',
      kernel: '^1.0.0',
      uses: { words: pointWith(minLength) },
    })
  const guest = definePlugin({
    name: 'guest',
    version: '1.0.0',
    kernel: '^1.0.0',
    contributes: [into(pointWith(1), () => ({ word: 'abc' }))],
  })
  const server = await startServer({ plugins: [owner(3), guest] })
  assert.match(
    await server.kernel.applyPlugins([owner(4), guest]).then(
      () => '',
      (error: Error) => error.message,
    ),
    /^What guest contributes to point words does not fit: .*word/,
  )
  await server.stop()
})

test.after(endServers)
test.run()
