// Every figure that a server offers is explained to its operators; those of adapters and plugins.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { endServers, readEvents, startServer } from '../../conformance/plugin/server.ts'
import { sum, text } from './figures.ts'

const home = resolve(import.meta.dirname, '../../..')
const page = readFileSync(join(home, 'OPERATIONS.md'), 'utf8')

test('a server offers exactly the figures that OPERATIONS.md explains, by type', async () => {
  const server = await startServer()
  const offered = [...(await text(server)).matchAll(/^# TYPE (\S+) (\S+)$/gm)]
    .map(([, name, type]) => `${name} ${type}`)
    .sort()
  const explained = [
    ...page.matchAll(/^\| `([a-z0-9_]+)(?:\{[a-z, ]+\})?` \| (counter|gauge|histogram) \|/gm),
  ]
    .map(([, name, type]) => `${name} ${type}`)
    .sort()
  await server.stop()
  assert.ok(offered.length > 40)
  assert.equal(explained, offered)
})

test('names follow conventions: counters end with _total, units are s and bytes', async () => {
  const server = await startServer()
  const offered = [...(await text(server)).matchAll(/^# TYPE (\S+) (\S+)$/gm)]
  await server.stop()
  for (const [, name, type] of offered) {
    if (!name!.startsWith('nodejs_')) assert.is(name!.endsWith('_total'), type === 'counter', name)
    assert.not.match(name!, /_(ms|milliseconds|kb|mb|kib|mib)\b/)
  }
})

test('an adapter is timed by port and method, and its failures by their codes', async () => {
  const server = await startServer()
  const { token } = await server.account()
  const of = ['port="storage"', 'method="find"']
  const timed = async () => sum(server, 'adapter_call_duration_seconds_count', ...of)
  const before = await timed()
  await server.call('GET', '/sessions', { token })
  assert.ok((await timed()) > before)
  assert.is(await sum(server, 'adapter_call_errors_total', 'code="INSUFFICIENT_CREDITS"'), 0)
  const poor = await server.account(0)
  assert.is(
    (await server.call('POST', '/chat', { token: poor.token, body: { message: 'hello' } })).status,
    402,
  )
  assert.is(
    await sum(
      server,
      'adapter_call_errors_total',
      'port="billing"',
      'method="hold"',
      'code="INSUFFICIENT_CREDITS"',
    ),
    1,
  )
  await server.stop()
})

test('a model is timed until its first batch, and counted when it fails later', async () => {
  const server = await startServer({ env: { RUNS_TRIES_MAX: '1' } })
  const { token } = await server.account()
  await readEvents(
    await server.stream(
      token,
      (
        (await server.call('POST', '/chat', { token, body: { message: '[[fail_after=2]]' } }))
          .body as { run_id: string }
      ).run_id,
    ),
  )
  assert.is(
    await sum(server, 'adapter_call_duration_seconds_count', 'port="models"', 'method="stream"'),
    1,
  )
  assert.is(
    await sum(
      server,
      'adapter_call_errors_total',
      'port="models"',
      'method="stream"',
      'code="MODEL_FAILED"',
    ),
    1,
  )
  await server.stop()
})

test('a plugin is counted when a generation of it serves, and when it is refused', async () => {
  const server = await startServer()
  const folder = join(server.dataDir, 'guest')
  const write = (body: string) => writeFileSync(join(folder, 'plugin.js'), body)
  mkdirSync(folder)
  const whole =
    "import { definePlugin } from 'agent-platform/plugin'\nexport default definePlugin({ " +
    "name: 'guest', version: '1.0.0', kernel: '^1.0.0' })\n"
  write(whole)
  await server.pluginRegistry.load(folder)
  write(`${whole}// again`)
  await server.pluginRegistry.reload('guest')
  assert.equal(
    [
      await sum(server, 'plugin_loads_total', 'plugin="guest"'),
      await sum(server, 'plugin_load_failures_total'),
    ],
    [2, 0],
  )
  for (const broken of ['this is no program', whole.replace('^1.0.0', '^9.0.0')]) {
    write(broken)
    await server.pluginRegistry.reload('guest').then(
      () => assert.unreachable(),
      () => undefined,
    )
  }
  assert.equal(
    [
      await sum(server, 'plugin_loads_total', 'plugin="guest"'),
      await sum(server, 'plugin_load_failures_total'),
    ],
    [2, 2],
  )
  await server.stop()
})

test.after(endServers)
test.run()
