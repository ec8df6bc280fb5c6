// Where an orchestrator sends its traffic: the answer names what does not work.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { ports } from '../../../kernel/adapters.ts'
import { endServers, startServer } from '../../conformance/plugin/server.ts'

type Ready = { status: string; checks: { name: string; ok: boolean; detail?: string }[] }
type Pingable = { ping(): Promise<void> }

test('each failed port is named; only those that serving needs turn traffic away', async () => {
  const server = await startServer({ env: { READY_CACHE_MS: '0' } })
  const ready = async () => {
    const { status, body } = await server.call('GET', '/readyz')
    const { checks } = body as Ready
    return {
      status,
      told: (body as Ready).status,
      failing: checks.filter(({ ok }) => !ok).map(({ name, detail }) => [name, detail]),
      names: checks.map(({ name }) => name),
    }
  }
  const well = await ready()
  const asked = ports.filter(name => name !== 'clock')
  assert.equal([well.status, well.told, well.failing], [200, 'ready', []])
  for (const name of asked) {
    assert.ok(well.names.includes(`port:${name}`), name)
    const engine = server.engine<Pingable>(name)
    const { ping } = engine
    engine.ping = () => Promise.reject(new Error(`${name} is away`))
    const { status, told, failing } = await ready()
    const expected = ['storage', 'eventlog', 'queue', 'billing', 'limits'].includes(name)
      ? [503, 'not ready']
      : [200, 'degraded']
    assert.equal(
      [status, told, failing[0]],
      [...expected, [`port:${name}`, `${name} is away`]],
      name,
    )
    assert.is((await server.call('GET', '/healthz')).status, 200)
    engine.ping = ping
  }
  assert.is((await ready()).status, 200, 'and it is ready again by itself')
  await server.stop()
})

test('an absent storage is named by its adapter; one that hangs, after two seconds', async () => {
  const server = await startServer({ env: { STORAGE_URL: 'sqlite:', READY_CACHE_MS: '0' } })
  const storage = server.engine<Pingable & { close(): Promise<void> }>('storage')
  const { ping } = storage
  storage.ping = () => new Promise(() => undefined)
  const hanging = (await server.call('GET', '/readyz')).body as Ready
  assert.match(
    hanging.checks.find(({ name }) => name === 'port:storage')!.detail!,
    /no answer within 2000 ms/,
  )
  storage.ping = ping
  await storage.close()
  const { status, body } = await server.call('GET', '/readyz')
  assert.is(status, 503)
  assert.is((body as Ready).checks.find(({ name }) => name === 'port:storage')!.ok, false)
  await server.stop()
})

test('however many ask, the parts are asked once in a while', async () => {
  const server = await startServer({ env: { READY_CACHE_MS: '60000' } })
  const mail = server.engine<Pingable>('mail')
  let asked = 0
  mail.ping = async () => {
    asked++
  }
  const answers = await Promise.all(Array.from({ length: 20 }, () => server.call('GET', '/readyz')))
  assert.equal(
    [new Set(answers.map(({ status }) => status)), asked],
    [new Set([200]), 1],
    'while it is being found out',
  )
  assert.is((await server.call('GET', '/readyz')).status, 200)
  assert.is(asked, 1, 'and after')
  await server.stop()
})

test.after(endServers)
test.run()
