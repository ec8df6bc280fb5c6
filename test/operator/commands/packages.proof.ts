// A package that is added at one process serves at every other on the same storage, each with a
// DATA_DIR of its own; what was not added so does not come in.
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { systemClock } from '#adapters/clock/system.ts'
import type { Clock } from '#ports/clock.ts'
import type { StorageEngine } from '#ports/storage.ts'
import { StoredPackages, Parts } from '../../../plugins/operator/packages/package-store.ts'
import { lasting, until } from '../../support/engine.ts'
import { endServers, startServer, type TestServer } from '../../conformance/plugin/server.ts'

const dir = mkdtempSync(join(tmpdir(), 'agent-platform-packages-'))
const authSecret = 'a secret of this installation, long enough'
const write = (folder: string, files: Record<string, string | object>) => {
  mkdirSync(join(dir, folder), { recursive: true })
  for (const [name, content] of Object.entries(files))
    writeFileSync(
      join(dir, folder, name),
      typeof content === 'string' ? content : JSON.stringify(content),
    )
  return join(dir, folder)
}
/** With a dependency, and with more bytes than one part takes, which no packing makes smaller. */
const packed = (version: string) => {
  write('words', {
    'package.json': { name: 'words', version, type: 'module', main: 'index.js' },
    'index.js': `export const word = 'hello ${version}'`,
  })
  return write('greeter', {
    'package.json': {
      name: '@acme/greeter',
      version,
      type: 'module',
      main: 'plugin.js',
      dependencies: { words: 'file:../words' },
    },
    'noise.txt': Array.from({ length: 10 }, () =>
      Buffer.from(crypto.getRandomValues(new Uint8Array(60_000))).toString('base64'),
    ).join(''),
    'plugin.js': `
import { definePlugin } from 'agent-platform/plugin'
import { contract } from 'agent-platform/contract'
import { word } from 'words'
const row = { summary: 'For a test', auth: 'public', reply: { type: 'string' } }
export default definePlugin({ name: 'greeter', version: '${version}', kernel: '^1.0.0', mount: 'v1',
  contract: contract({ 'GET /greeter': row }),
  routes: { 'GET /greeter': () => word } })`,
  })
}
const start = (
  given: ReturnType<typeof lasting> & { clock?: Clock },
  secret: string | undefined = authSecret,
) => startServer({ given, env: secret ? { AUTH_SECRET: secret } : {} })
const command = (server: TestServer, name: string, given: object) =>
  server.kernel.commands().get(name)!.run(given) as Promise<Record<string, unknown>>
const answerOf = async (server: TestServer) => {
  const { status, body } = await server.call('GET', '/greeter')
  return status === 200 ? body : status
}
const everywhere = (what: string, servers: readonly TestServer[], expected: unknown) =>
  until(what, async () =>
    (await Promise.all(servers.map(answerOf))).every(answer => answer === expected),
  )
const failureAt = (server: TestServer) =>
  server.pluginRegistry.list().find(({ state }) => state === 'failed')?.detail ?? ''
/** Why it failed to come; the next try, which may begin at once, has no such word for a while. */
const missed = async (server: TestServer): Promise<string> => {
  let why = ''
  await until('missed', () => (why = failureAt(server)) !== '')
  return why
}
const countsOf = async ({ storage }: { storage: StorageEngine }) => [
  await storage.count(StoredPackages),
  await storage.count(Parts),
]

test('a package is added, upgraded, rolled back and removed at every process', async () => {
  const given = lasting({ exclusive: false })
  const [one, other] = [await start(given), await start(given)]
  const { integrity } = await command(one, 'plugins add', { package: packed('1.0.0') })
  assert.type(integrity, 'string')
  await everywhere('added', [one, other], 'hello 1.0.0')
  const [parcels, parts] = await countsOf(given)
  assert.is(parcels, 1)
  assert.ok(parts! > 1, 'it takes several parts')
  assert.ok(
    other.pluginRegistry
      .list()
      .find(({ name }) => name === 'greeter')!
      .source.startsWith(join(other.dataDir, 'packages', '@acme+greeter', '1.0.0-')),
  )
  await command(other, 'plugins add', { package: packed('2.0.0') })
  await everywhere('upgraded', [one, other], 'hello 2.0.0')
  await command(one, 'plugins rollback', { name: 'greeter' })
  await everywhere('gone back', [one, other], 'hello 1.0.0')
  const late = await start(given)
  assert.is(await answerOf(late), 'hello 1.0.0')
  assert.equal(
    readdirSync(join(late.dataDir, 'packages')),
    ['@acme+greeter'],
    'nothing is left of its coming',
  )
  await command(late, 'plugins remove', { name: 'greeter' })
  await everywhere('removed', [one, other, late], 404)
  assert.equal(await countsOf(given), [0, 0])
})

test('the same version again takes the place of what was kept', async () => {
  const given = lasting({ exclusive: false })
  const one = await start(given)
  const path = packed('1.0.0')
  await command(one, 'plugins add', { package: path })
  const {
    items: [before],
  } = await given.storage.find(StoredPackages)
  await one.pluginRegistry.unload('greeter')
  await command(one, 'plugins add', { package: path })
  const {
    items: [after],
  } = await given.storage.find(StoredPackages)
  assert.is(after!.id, before!.id)
  assert.is.not(after!.copy, before!.copy)
  assert.equal(await countsOf(given), [1, after!.parts], 'no part is left of the other')
})

test('a package changed in the storage or vouched for by another secret is refused', async () => {
  const given = lasting({ exclusive: false })
  const one = await start(given)
  await command(one, 'plugins add', { package: packed('1.0.0') })
  const stranger = await start(given, 'another secret than that of the others, as long')
  assert.match(
    await missed(stranger),
    new RegExp(
      String.raw`^@acme\+greeter/1\.0\.0-\w{8} is not as it was added, ` +
        'or was added under another AUTH_SECRET; add it again$',
    ),
  )
  const {
    items: [part],
  } = await given.storage.find(Parts)
  await given.storage.update(Parts, part!.id, {
    set: {
      data: Buffer.concat([Buffer.from(part!.data, 'base64'), Buffer.from([0])]).toString('base64'),
    },
  })
  const late = await start(given)
  assert.match(await missed(late), /is not as it was added/)
  assert.is(await answerOf(late), 404)
  assert.equal(readdirSync(join(late.dataDir, 'packages')), [], 'nothing of it was unpacked')
})

test('where parts are missing for a moment, it comes when they are there', async () => {
  const given = lasting({ exclusive: false })
  const one = await start(given)
  await command(one, 'plugins add', { package: packed('1.0.0') })
  const {
    items: [part],
  } = await given.storage.find(Parts)
  await given.storage.remove(Parts, part!.id)
  const late = await start({
    ...given,
    clock: {
      ...systemClock(),
      sleep: (ms: number, signal?: AbortSignal) =>
        systemClock().sleep(ms === 15_000 ? 50 : ms, signal),
    },
  })
  assert.match(await missed(late), /its parts are being replaced/)
  await given.storage.insert(Parts, part!)
  // Nobody tells it: the process looks again by itself.
  await until('come', async () => (await answerOf(late)) === 'hello 1.0.0')
})

test('without AUTH_SECRET it stays where it was added', async () => {
  const given = lasting({ exclusive: false })
  const one = await start(given, '')
  await command(one, 'plugins add', { package: packed('1.0.0') })
  assert.equal(await countsOf(given), [0, 0])
  const late = await start(given, '')
  assert.match(await missed(late), /^There is nothing at /)
})

test.after(async () => {
  await endServers()
  rmSync(dir, { recursive: true, force: true })
})
test.run()
