// A start compiles the schemas of this program's own plugins when they are first used. So each is
// compiled here, and a row that does not compile fails its build, not its first call.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { endpointsOf } from '../../kernel/routing/endpoint.ts'
import type { Instance } from '../../kernel/loading/instance.ts'
import { checkDeclared } from '../../kernel/loading/declared.ts'
import { loadPlugins } from '../../kernel/loading/sources.ts'
import { startServer } from '../conformance/plugin/server.ts'

for (const plugin of await loadPlugins())
  test(`every schema of ${plugin.name} compiles`, () => {
    checkDeclared(plugin)
    const endpoints = endpointsOf({ plugin } as Instance, { strict: true, compile: 'now' })
    assert.is(endpoints.length, Object.keys(plugin.contract ?? {}).length)
  })

test('what is wrong with a schema is found at its first use, where it is not before', () => {
  const plugin = {
    name: 'broken',
    version: '1.0.0',
    kernel: '^1.0.0',
    contract: {
      'POST /broken': { summary: '', description: '', body: { type: 'objekt' }, reply: 'none' },
    },
    routes: { 'POST /broken': () => undefined },
  }
  const endpoints = (compile: 'now' | 'on first use') =>
    endpointsOf({ plugin } as unknown as Instance, { strict: false, compile })
  assert.throws(() => endpoints('now'), /broken 1\.0\.0 cannot offer POST \/broken/)
  const [endpoint] = endpoints('on first use')
  assert.throws(() => endpoint!.checks.body!({}), /objekt|type/)
})

test('a start refuses and accepts what it did before', async () => {
  const server = await startServer()
  const wrong = await server.call('POST', '/auth/login', { body: { email: 'no', password: 'x' } })
  assert.equal(
    [wrong.status, (wrong.body as { field?: string; detail: string }).detail.includes('email')],
    [400, true],
  )
  await server.stop()
})

test.run()
