// Plugins that are refused: the sentence names the culprits, and the living set goes on serving.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, service, type Plugin } from '#kernel'
import { greeter, Greeting, hello, refusal, speaker, using } from './greeter.ts'

test('a failure while loading leaves the old generation serving and says why', async () => {
  const trace: string[] = []
  const broken = definePlugin({
    name: 'broken',
    version: '1.0.0',
    kernel: '^1.0.0',
    start: () => {
      throw new Error('no such socket')
    },
  })
  await using([greeter('kept'), speaker()], async ({ call, kernel }) => {
    const reason = await kernel.applyPlugins([greeter('lost', trace), speaker(), broken]).then(
      () => '',
      (error: Error) => error.message,
    )
    assert.is(reason, 'broken 1.0.0 cannot be built: no such socket')
    assert.equal((await call('GET', '/hello')).body, { text: 'kept', words: ['kept'] })
    assert.equal(
      trace,
      ['start lost', 'undo second of lost', 'undo first of lost'],
      'what was built is undone',
    )
  })
})

test('an unhealthy plugin is not swapped in', async () => {
  const sick = definePlugin({
    name: 'sick',
    version: '1.0.0',
    kernel: '^1.0.0',
    health: async () => {
      throw new Error('cannot reach it')
    },
  })
  assert.is(await refusal([sick]), 'sick 1.0.0 is not healthy: cannot reach it')
})

test('a version that cannot read what lives is refused by number; so is an unload', async () => {
  let live = 0
  const keeper = (version: string, reads: string[]) =>
    definePlugin({
      name: 'keeper',
      version,
      kernel: '^1.0.0',
      records: { reads, of: 'runs', live: async () => ({ 'keeper@1': live, 'keeper@0': 0 }) },
    })
  await using([keeper('1.0.0', ['keeper@0', 'keeper@1'])], async ({ kernel }) => {
    const upgrade = (plugins: Plugin[]) =>
      kernel.applyPlugins(plugins).then(
        () => '',
        (error: Error) => error.message,
      )
    live = 17
    assert.is(
      await upgrade([keeper('2.0.0', ['keeper@2'])]),
      'keeper 2.0.0 cannot read keeper@1, which 17 live runs hold.',
    )
    assert.is(await upgrade([]), 'Without keeper nobody reads keeper@1, which 17 live runs hold.')
    assert.is(kernel.host.plugins()[0]!.version, '1.0.0')
    assert.is(
      await upgrade([keeper('1.5.0', ['keeper@1', 'keeper@2'])]),
      '',
      'what nobody holds need not be read',
    )
    live = 0
    assert.is(await upgrade([keeper('2.0.0', ['keeper@2'])]), '')
  })
})

const named = (name: string, more: Partial<Plugin> = {}): Plugin => ({
  name,
  version: '1.0.0',
  kernel: '^1.0.0',
  ...more,
})
const needs = (
  name: string,
  token: ReturnType<typeof service>,
  gives?: ReturnType<typeof service>,
): Plugin =>
  named(name, {
    uses: { dep: token },
    ...(gives ? { services: { made: () => 1 }, provides: { made: gives } } : {}),
  })

for (const [why, plugins, sentence] of [
  [
    'a missing provider',
    [needs('taker', service('nowhere'))],
    /taker needs service:nowhere, and nothing provides it/,
  ],
  [
    'a circle',
    [needs('a', service('x'), service('y')), needs('b', service('y'), service('x'))],
    /a → b → a need each other/,
  ],
  [
    'two owners of a route',
    [speaker(), greeter('hi'), { ...speaker(), name: 'echo' }],
    /GET \/api\/v1\/hello is claimed by speaker and echo/,
  ],
  [
    'another kernel',
    [named('future', { kernel: '^9.0.0' })],
    /future 1\.0\.0 asks for kernel \^9\.0\.0; this is 1\./,
  ],
  [
    'a reserved name',
    [named('thief', { services: { caller: () => 1 } })],
    /thief names a dependency or service "caller", which is reserved/,
  ],
  [
    'a row without a handler',
    [named('idle', { contract: hello })],
    /idle declares GET \/hello and has no handler for it/,
  ],
  [
    'a handler without a row',
    [named('eager', { routes: { 'GET /x': () => 1 } })],
    /eager handles GET \/x, which its contract does not declare/,
  ],
  [
    'a port that is not bound',
    [named('hungry', { uses: { dep: { id: 'port:moon', kind: 'port', version: '1.0.0' } } })],
    /hungry needs port:moon, and no such port is bound/,
  ],
  [
    'a rate that is not declared',
    [
      named('fast', {
        contract: { 'GET /x': { summary: '', reply: 'none', limit: { name: 'x', by: 'user' } } },
        routes: { 'GET /x': () => undefined },
      }),
    ],
    /fast limits GET \/x by "x", a rate that it does not declare/,
  ],
] as const)
  test(`${why} is refused with a sentence that names the culprits`, async () =>
    assert.match(await refusal([...plugins] as Plugin[]), sentence))

test('a failed start of one plugin undoes the others and closes the adapters', async () => {
  const trace: string[] = []
  assert.is(
    await refusal([
      greeter('first', trace),
      definePlugin({
        name: 'late',
        version: '1.0.0',
        kernel: '^1.0.0',
        uses: { greeting: Greeting },
        start: () => {
          throw new Error('broken')
        },
      }),
    ]),
    'late 1.0.0 cannot be built: broken',
  )
  assert.equal(trace, ['start first', 'undo second of first', 'undo first of first'])
})

test.run()
