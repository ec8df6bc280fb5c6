// What an operator changes at one process reaches the others that share its storage, told or not;
// what lies in DATA_DIR has another path at each.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { lasting, until } from '../support/engine.ts'
import { startServer, type TestServer } from '../conformance/plugin/server.ts'

const dir = mkdtempSync(join(tmpdir(), 'agent-platform-processes-'))
const living: TestServer[] = []
const write = (name: string, answer: string) => {
  mkdirSync(join(dir, name), { recursive: true })
  writeFileSync(
    join(dir, name, 'plugin.js'),
    `
import { definePlugin } from 'agent-platform/plugin'
import { contract } from 'agent-platform/contract'
const row = { summary: 'For a test', auth: 'public', reply: { type: 'string' } }
export default definePlugin({ name: '${name}', version: '1.0.0', kernel: '^1.0.0', mount: 'v1',
  contract: contract({ 'GET /${name}': row }),
  routes: { 'GET /${name}': () => '${answer}' } })`,
  )
  return join(dir, name)
}
const start = async (given: ReturnType<typeof lasting>) => {
  const server = await startServer({ given })
  living.push(server)
  return server
}
const answerOf = async (server: TestServer, name: string) => {
  const { status, body } = await server.call('GET', `/${name}`)
  return status === 200 ? body : status
}
const everywhere = (
  what: string,
  servers: readonly TestServer[],
  name: string,
  expected: unknown,
) =>
  until(what, async () =>
    (await Promise.all(servers.map(server => answerOf(server, name)))).every(
      answer => answer === expected,
    ),
  )

test('a plugin changed at one process changes at all; a later process finds it', async () => {
  const given = lasting({ exclusive: false })
  const [one, other] = [await start(given), await start(given)]
  const path = write('hello', 'first')
  await one.pluginRegistry.load(path)
  await everywhere('loaded', [one, other], 'hello', 'first')
  await new Promise(resolve => setTimeout(resolve, 20))
  write('hello', 'second')
  await other.pluginRegistry.reload('hello')
  await everywhere('reloaded', [one, other], 'hello', 'second')
  await one.pluginRegistry.rollback('hello')
  await everywhere('rolled back', [one, other], 'hello', 'first')
  await other.pluginRegistry.rollback('hello')
  await everywhere('and forth', [one, other], 'hello', 'second')
  const late = await start(given)
  assert.is(await answerOf(late, 'hello'), 'second')
  await late.pluginRegistry.unload('hello')
  await everywhere('unloaded', [one, other, late], 'hello', 404)
})

test('limits to organisations and threads are the same at all', async () => {
  const given = lasting({ exclusive: false })
  const [one, other] = [await start(given), await start(given)]
  const path = write('shy', 'here')
  await one.pluginRegistry.load(path)
  await everywhere('loaded', [one, other], 'shy', 'here')
  const organisation = crypto.randomUUID()
  const listed = () => other.pluginRegistry.list().find(({ name }) => name === 'shy')
  await one.pluginRegistry.enable('shy', [organisation])
  await until('limited', () => listed()?.organisations?.[0] === organisation)
  assert.is(await answerOf(other, 'shy'), 404)
  await one.pluginRegistry.enable('shy', null)
  await one.pluginRegistry.isolate('shy', { memory_mb: 64, stall_ms: 5000 })
  await until('in a thread', () => listed()?.isolated?.memory_mb === 64)
  assert.is(await answerOf(other, 'shy'), 'here')
})

test('each process looks for a plugin in its own DATA_DIR and reports a missing one', async () => {
  const given = lasting({ exclusive: false })
  const [one, other] = [await start(given), await start(given)]
  mkdirSync(join(one.dataDir, 'packages', 'own'), { recursive: true })
  writeFileSync(
    join(one.dataDir, 'packages', 'own', 'plugin.js'),
    `
import { definePlugin } from 'agent-platform/plugin'
export default definePlugin({ name: 'own', version: '1.0.0', kernel: '^1.0.0' })`,
  )
  await one.pluginRegistry.load(join(one.dataDir, 'packages', 'own'))
  await until('missed', () =>
    other.pluginRegistry
      .list()
      .some(({ state, source }) => state === 'failed' && source.startsWith(other.dataDir)),
  )
  const missed = other.pluginRegistry.list().find(({ state }) => state === 'failed')!
  assert.match(missed.detail, 'There is nothing at')
  await other.pluginRegistry.unload(missed.source)
  assert.not(other.pluginRegistry.list().some(({ state }) => state === 'failed'))
  await until('unloaded everywhere', () =>
    one.pluginRegistry.list().every(({ name }) => name !== 'own'),
  )
})

test.after(async () => {
  for (const server of living) await server.stop()
  rmSync(dir, { recursive: true, force: true })
})
test.run()
