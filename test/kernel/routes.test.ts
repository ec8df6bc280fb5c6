// What a route is: its full path, whatever its parameters' names and its plugin's mount are.
import { Type as t } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Plugin } from '#kernel'
import type { Operation, OperationKey } from '#contracts/contract.ts'
import type { HttpServer } from '#ports/http.ts'
import type { Queue } from '#ports/queue.ts'
import { endServers, startServer } from '../conformance/plugin/server.ts'

const row: Operation = {
  summary: 'For a test',
  auth: 'public',
  reply: t.Object({ by: t.String() }),
}
const serving = (
  name: string,
  keys: readonly string[],
  mount: 'v1' | 'root' = 'v1',
  more: Partial<Plugin> = {},
): Plugin => ({
  name,
  version: '1.0.0',
  kernel: '^1.0.0',
  mount,
  contract: Object.fromEntries(keys.map(key => [key as OperationKey, row])),
  routes: Object.fromEntries(keys.map(key => [key, () => ({ by: name })])),
  ...more,
})
const first = serving('first', ['GET /things', 'GET /things/{id}', 'GET /things/{id}/parts'])

for (const [why, other, sentence] of [
  [
    'the same path from the root',
    serving('other', ['GET /api/v1/things'], 'root'),
    /^The route GET \/api\/v1\/things is claimed by first and other\.$/,
  ],
  [
    'the same shape under another name',
    serving('other', ['GET /things/{key}']),
    /^The route GET \/api\/v1\/things\/\{\} is claimed by first and other\.$/,
  ],
  [
    'both at once',
    serving('other', ['GET /api/v1/things/{key}/parts'], 'root'),
    /^The route GET \/api\/v1\/things\/\{\}\/parts is claimed by first and other\.$/,
  ],
  [
    'a path that a router would read as a pattern',
    serving('other', ['GET /:any/things']),
    /^other 1\.0\.0 declares GET \/:any\/things, whose path is not made of plain words/,
  ],
  [
    'a path that begins with no slash',
    serving('other', ['GET things']),
    /^other 1\.0\.0 declares GET things, whose path/,
  ],
] as const)
  test(`${why} is refused, and nothing has changed`, async () => {
    const server = await startServer({ plugins: [first] })
    const before = server.kernel.host.plugins()
    assert.match(
      await server.kernel.applyPlugins([first, other]).then(
        () => 'it serves',
        (error: Error) => error.message,
      ),
      sentence,
    )
    assert.equal(server.kernel.host.plugins(), before)
    assert.equal((await server.call('GET', '/things/a')).body, { by: 'first' })
    await server.stop()
  })

test('paths that differ in a sign alone come and go each for itself', async () => {
  const two = serving('two', ['GET /a-b', 'GET /a/b'])
  const server = await startServer({ plugins: [first, two] })
  const statuses = () =>
    Promise.all(['/a-b', '/a/b'].map(async path => (await server.call('GET', path)).status))
  assert.equal(await statuses(), [200, 200])
  await server.kernel.applyPlugins([first])
  assert.equal(await statuses(), [404, 404])
  await server.kernel.applyPlugins([first, two])
  assert.equal(await statuses(), [200, 200])
  await server.stop()
})

for (const port of ['http', 'queue'] as const)
  test(`what the ${port} refuses leaves the old set whole, and the new one undone`, async () => {
    const undone: string[] = []
    const other = serving('other', ['GET /other'], 'v1', {
      jobs: { 'other.job': { run: async () => {} } },
      start: ({ defer }: { defer: (undo: () => unknown) => void }) =>
        defer(() => undone.push('other')),
    } as never)
    const server = await startServer({ plugins: [first] })
    const http = server.engine<HttpServer>('http')
    const queue = server.engine<Queue>('queue')
    const routes = http.routes.bind(http)
    const define = queue.define.bind(queue)
    const refuse = () => {
      throw new Error('no room')
    }
    if (port === 'http')
      http.routes = rows =>
        rows.some(({ path }) => path.endsWith('/other')) ? refuse() : routes(rows)
    else queue.define = refuse
    let given = 0
    if (port === 'http')
      queue.define = (...asked) => {
        const stop = define(...asked)
        return () => (given++, stop())
      }
    assert.is(
      await server.kernel.applyPlugins([first, other]).then(
        () => 'it serves',
        (error: Error) => error.message,
      ),
      'no room',
    )
    assert.equal(
      server.kernel.host.plugins().map(({ name }) => name),
      ['first'],
    )
    assert.equal(
      [
        (await server.call('GET', '/things')).status,
        (await server.call('GET', '/other')).status,
        undone,
      ],
      [200, 404, ['other']],
    )
    assert.is(given, port === 'http' ? 1 : 0, 'its job is given back')
    Object.assign(http, { routes })
    Object.assign(queue, { define })
    await server.kernel.applyPlugins([first, other])
    assert.equal(
      [(await server.call('GET', '/things')).status, (await server.call('GET', '/other')).status],
      [200, 200],
    )
    await server.stop()
  })

for (const [why, more, sentence] of [
  [
    'a handler that is none',
    { routes: { 'GET /x': 'text' as never } },
    /needs a function as the handler of GET \/x/,
  ],
  [
    'a job without run',
    { jobs: { nightly: {} as never } },
    /needs a function as run of the job nightly/,
  ],
  ['a start that is no function', { start: {} as never }, /needs a function as start/],
  [
    'options that are no schema',
    {
      commands: { 'x y': { summary: '', options: { type: 'wrong' } as never, run: async () => 1 } },
    },
    /has no valid schema for the options of the command "x y"/,
  ],
  [
    'a command on the whole installation without a reason',
    {
      commands: {
        whole: { summary: '', options: t.Object({}), offline: true, run: async () => 1 },
      },
    },
    /other 1\.0\.0 has the command "whole", which works on the whole installation, and does not/,
  ],
  [
    'an event whose data has no schema',
    { emits: { ping: { type: 'object', required: 7 } as never } },
    /has no valid schema for the data of the event ping/,
  ],
  ['a name with a slash', { name: 'a/b' }, /^a\/b 1\.0\.0 has a name that is not/],
] as const)
  test(`${why} is refused when it is loaded`, async () => {
    const server = await startServer({ plugins: [first] })
    const outcome = await server.kernel
      .applyPlugins([first, { ...serving('other', ['GET /x']), ...more }])
      .then(
        () => 'it serves',
        (error: Error) => error.message,
      )
    assert.match(outcome, sentence)
    await server.stop()
  })

test.after(endServers)
test.run()
