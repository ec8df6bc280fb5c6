// Adapters from packages: added while no server runs, bound by the next start, changed, removed.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { commandLine, endProcesses, runMain, signUp, startProcess } from '../../support/process.ts'
import { pack } from '../../partner/packed.ts'

type Listing = {
  adapters: { port: string; schemes: string }[]
  packages: { package: string; version: string; adapters: string; integrity: string }[]
}
const home = mkdtempSync(join(tmpdir(), 'agent-platform-adapters-'))
const env = { DATA_DIR: join(home, 'data') }
const adapters = <T = Record<string, string>>(...args: string[]) =>
  commandLine<T>(['adapters', ...args], env)
const list = () => adapters<Listing>('list')
const house = JSON.stringify(
  pathToFileURL(resolve(import.meta.dirname, '../../../adapters/storage/memory.ts')).href,
)
const boxed = (scheme: string) =>
  `import { defineAdapter } from 'agent-platform/ports/adapter'\nimport memory from ` +
  `${house}\nexport default defineAdapter({ ...memory, scheme: '${scheme}' })\n`
/** A packed package with these files. */
const packed = async (
  name: string,
  version: string,
  files: Readonly<Record<string, string>>,
  more: object = {},
) => {
  const folder = mkdtempSync(join(home, 'package-'))
  for (const [path, text] of Object.entries({
    'package.json': JSON.stringify({ name, version, type: 'module', ...more }),
    ...files,
  })) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  return pack(folder, home)
}
const refused = async (sentence: RegExp, ...args: string[]) => {
  const { code, out, err } = await runMain(['adapters', ...args, '--json'], env)
  assert.is(code, 1)
  assert.match(err, sentence)
  assert.equal(JSON.parse(out), { error: err.trim() })
}

test('an adapter is added without a server, listed, and bound by the next start', async () => {
  const running = { ...env, STORAGE_URL: 'boxed:' }
  await startProcess(running).then(
    () => assert.unreachable(),
    (error: Error) => assert.match(error.message, /STORAGE_URL: there is no adapter "boxed:"/),
  )
  const added = await adapters(
    'add',
    await packed(
      'boxed',
      '1.0.0',
      { 'storage/boxed.js': boxed('boxed') },
      { scripts: { install: `touch ${join(home, 'ran')}` } },
    ),
  )
  assert.equal(
    [added['package'], added['version'], added['adapters']],
    ['boxed', '1.0.0', 'storage boxed:'],
  )
  assert.match(added['integrity']!, /^sha512-/)
  assert.not(existsSync(join(home, 'ran')), 'install scripts are not run')
  const { adapters: rows, packages } = await list()
  assert.equal(packages, [
    {
      package: 'boxed',
      version: '1.0.0',
      adapters: 'storage boxed:',
      integrity: added['integrity'],
    },
  ])
  assert.match(rows.find(({ port }) => port === 'storage')!.schemes, / boxed:/)
  const elsewhere = { ...running, DATA_DIR: join(home, 'elsewhere') }
  renameSync(env.DATA_DIR, elsewhere.DATA_DIR)
  const server = await startProcess({ ...elsewhere, EVENTLOG_URL: 'memory:' })
  const { token } = await signUp(server.base, elsewhere, 7)
  assert.equal(
    await (
      await fetch(`${server.base}/balance`, { headers: { authorization: `Bearer ${token}` } })
    ).json(),
    { balance: 7, held: 0, available: 7 },
  )
  await server.kill('SIGTERM')
  renameSync(elsewhere.DATA_DIR, env.DATA_DIR)
})

test('another version takes its place in its own folder; the older can come back', async () => {
  const before = await list()
  const second = await adapters(
    'add',
    await packed('boxed', '2.0.0', {
      'storage/boxed.js': boxed('boxed'),
      'storage/crate.js': boxed('crate'),
    }),
  )
  assert.equal(
    [second['version'], second['previous'], second['adapters']],
    ['2.0.0', '1.0.0', 'storage boxed:, storage crate:'],
  )
  assert.equal(
    readdirSync(join(env.DATA_DIR, 'adapters/boxed'))
      .map(name => name.slice(0, 6))
      .sort(),
    ['1.0.0-', '2.0.0-'],
  )
  assert.is((await adapters('add', join(home, 'boxed-1.0.0.tgz')))['previous'], '2.0.0')
  assert.equal(await list(), before)
})

test('what is no adapter, or hides one, is refused and changes nothing', async () => {
  const before = await list()
  await refused(
    /^nothing offers no adapter: it has no file <port>\/<scheme>\.js/,
    'add',
    await packed('nothing', '1.0.0', { 'index.js': '', 'parcels/boxed.js': boxed('boxed') }),
  )
  await refused(
    /^thief offers storage boxed:, which there is already/,
    'add',
    await packed('thief', '1.0.0', { 'storage/boxed.js': boxed('boxed') }),
  )
  await refused(
    /^thief offers blobs file:, which there is already/,
    'add',
    await packed('thief', '1.0.1', { 'blobs/file.js': boxed('file') }),
  )
  await refused(
    new RegExp(
      String.raw`^boxed cannot be added: storage/boxed\.js: ` +
        String.raw`storage/boxed\.js has no adapter of storage for boxed:`,
    ),
    'add',
    await packed('boxed', '3.0.0', { 'storage/boxed.js': boxed('other') }),
  )
  await refused(
    /^boxed cannot be added: Unexpected/,
    'add',
    await packed('boxed', '3.0.1', { 'storage/boxed.js': 'export default {' }),
  )
  await refused(/npm could not install it/, 'add', join(home, 'missing.tgz'))
  assert.equal(await list(), before)
  assert.equal(readdirSync(join(env.DATA_DIR, 'adapters')), ['boxed'], 'nothing half done stays')
})

test('removed, its folders are gone and the next start says what is missing', async () => {
  await refused(/^nobody was not added; there are boxed/, 'remove', 'nobody')
  await adapters('remove', 'boxed')
  assert.equal([(await list()).packages, readdirSync(join(env.DATA_DIR, 'adapters'))], [[], []])
  await startProcess({ ...env, STORAGE_URL: 'boxed:' }).then(
    () => assert.unreachable(),
    (error: Error) => assert.match(error.message, /there is no adapter "boxed:"/),
  )
  writeFileSync(join(env.DATA_DIR, 'adapters.json'), 'nonsense')
  const { code, err } = await runMain(['adapters', 'list'], env)
  assert.is(code, 1)
  assert.match(err, /adapters\.json is not what was written there; correct or remove it\./)
  assert.is(readFileSync(join(env.DATA_DIR, 'adapters.json'), 'utf8'), 'nonsense')
})

test.after(async () => {
  await endProcesses()
  rmSync(home, { recursive: true, force: true })
})
test.run()
