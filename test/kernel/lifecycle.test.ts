// Load, swap, drain and stop, on the real kernel with small plugins.
import { Type as t } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, into, point, service, type Plugin } from '#kernel'
import { contract } from '#contracts/contract.ts'
import { startServer, type TestServer } from '../conformance/plugin/server.ts'

const Greeting = service<{ greet(): string }>('greeting')
const Words = point<string>('words')
const hello = contract({
  'GET /hello': {
    summary: 'Say hello',
    auth: 'public',
    reply: t.Object({ text: t.String(), words: t.Array(t.String()) }),
  },
})

const greeter = (text: string, trace: string[] = [], wait?: Promise<void>): Plugin =>
  definePlugin({
    name: 'greeter',
    version: '1.0.0',
    kernel: '^1.0.0',
    services: { greeting: () => ({ greet: () => text }) },
    provides: { greeting: Greeting },
    contributes: [into(Words, () => text)],
    start: async ({ defer }) => {
      trace.push(`start ${text}`)
      defer(() => {
        trace.push(`undo first of ${text}`)
      })
      defer(() => {
        trace.push(`undo second of ${text}`)
      })
      await wait
    },
  })
const speaker = (trace: string[] = [], inside?: () => Promise<void>): Plugin =>
  definePlugin({
    name: 'speaker',
    version: '1.0.0',
    kernel: '^1.0.0',
    contract: hello,
    uses: { greeting: Greeting, words: Words },
    routes: {
      'GET /hello': async ({ greeting, words, signal }) => {
        await inside?.()
        trace.push(`aborted ${signal.aborted}`)
        return { text: greeting.greet(), words: [...words()] }
      },
    },
  })

const using = async (plugins: Plugin[], run: (server: TestServer) => Promise<void>) => {
  const server = await startServer({ plugins, env: { DRAIN_MS: '2000' } })
  try {
    await run(server)
  } finally {
    await server.stop()
  }
}
const refusal = async (plugins: Plugin[]): Promise<string> =>
  startServer({ plugins }).then(
    async server => {
      await server.stop()
      return 'it was loaded'
    },
    (error: Error) => error.message,
  )

test('plugins are built in the order of their needs, whatever order they are given in', () =>
  using([speaker(), greeter('hi')], async ({ call }) => {
    assert.equal((await call('GET', '/hello')).body, { text: 'hi', words: ['hi'] })
  }))

test('a new generation rebuilds its dependents and undoes the old in reverse', async () => {
  const trace: string[] = []
  await using([greeter('one', trace), speaker()], async ({ call, kernel }) => {
    const [, dependent] = kernel.host.plugins()
    await (await kernel.applyPlugins([greeter('two', trace), speaker()])).drained
    assert.equal((await call('GET', '/hello')).body, { text: 'two', words: ['two'] })
    assert.equal(trace, ['start one', 'start two', 'undo second of one', 'undo first of one'])
    assert.ok(
      kernel.host.plugins().find(({ name }) => name === 'speaker')!.generation >
        dependent!.generation,
    )
  })
})

test('a plugin that is the same value is not touched', async () => {
  const same = greeter('same')
  await using([same], async ({ kernel }) => {
    const before = kernel.host.plugins()
    await kernel.applyPlugins([same])
    assert.equal(kernel.host.plugins(), before)
  })
})

test('a call under way ends on the generation that began it', async () => {
  let release = () => {}
  const gate = new Promise<void>(open => {
    release = open
  })
  const old = greeter('old')
  await using([old, speaker([], () => gate)], async ({ call, kernel }) => {
    const answer = call('GET', '/hello')
    await new Promise(resolve => setTimeout(resolve, 50))
    const change = kernel.applyPlugins([greeter('new'), speaker()])
    await new Promise(resolve => setTimeout(resolve, 50))
    assert.is(
      ((await call('GET', '/hello')).body as { text: string }).text,
      'new',
      'new calls meet the new generation',
    )
    release()
    assert.is(((await answer).body as { text: string }).text, 'old')
    await (await change).drained
  })
})

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

test('routes come and go with their plugin', () =>
  using([greeter('hi'), speaker()], async ({ call, kernel }) => {
    await kernel.applyPlugins([greeter('hi')])
    const gone = await call('GET', '/hello')
    assert.is(gone.status, 404)
    assert.match(
      (gone.body as { detail: string }).detail,
      /There is no operation GET \/api\/v1\/hello/,
    )
    await kernel.applyPlugins([greeter('hi'), speaker()])
    assert.is((await call('GET', '/hello')).status, 200)
  }))

test('500 calls during 20 reloads: none is dropped, none meets a half-state', () =>
  using([greeter('0'), speaker()], async ({ call, kernel }) => {
    let reloads = 0
    let going = true
    const load = Promise.all(
      Array.from({ length: 5 }, async () => {
        let calls = 0
        while (going || calls < 100) {
          const { status, body } = await call('GET', '/hello')
          const { text, words } = body as { text: string; words: string[] }
          assert.is(status, 200)
          assert.is(words.length, 1)
          assert.ok(Number(text) <= 20)
          calls++
          if (calls > 400) break
        }
      }),
    )
    while (reloads < 20) await kernel.applyPlugins([greeter(String(++reloads)), speaker()])
    going = false
    await load
  }))

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
