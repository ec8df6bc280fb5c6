// An operator changes which plugins serve, through the command line, signals and the HTTP surface
// of a living server.
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  commandLine,
  endProcesses,
  runMain,
  startProcess,
  type Process,
} from '../../support/process.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-plugins-'))
const folder = join(home, 'greeter')
const token = 'the-operator-of-this-test-0123456789'
const env = { DATA_DIR: join(home, 'data'), OPERATOR_TOKEN: token, DRAIN_MS: '500' }

/**
 * A partner's plugin outside the repository: plain JavaScript that knows the kernel by its name
 * alone, in two files.
 */
function write(words: string, version = '1.0.0', more = ''): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(join(folder, 'words.js'), `export const words = ${JSON.stringify(words)}`)
  writeFileSync(
    join(folder, 'plugin.js'),
    `
import { definePlugin } from 'agent-platform/plugin'
import { words } from './words.js'
export default definePlugin({
  name: 'greeter', version: ${JSON.stringify(version)}, kernel: '^1.0.0',
  contract: { 'GET /greeting': { summary: 'Greet', auth: 'public', reply: { type: 'object' } } },
  routes: { 'GET /greeting': () => ({ words }) }, ${more}
})`,
  )
}
const greeting = async ({ base }: Process) => {
  const response = await fetch(`${base}/greeting`)
  return response.status === 200
    ? ((await response.json()) as { words: string }).words
    : response.status
}
const plugins = (...args: string[]) =>
  commandLine<Record<string, unknown>>(['plugins', ...args], env)
const refused = async (...args: string[]) => {
  const { code, err } = await runMain(['plugins', ...args], env)
  assert.is(code, 1)
  return err.trim()
}
const until = async (holds: () => Promise<boolean>) => {
  for (let tries = 0; !(await holds()); tries++) {
    assert.ok(tries < 500, 'it never came')
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

let server = await startProcess(env)

test('a plugin from any folder is loaded, changed and unloaded while others serve', async () => {
  write('one')
  assert.equal(await plugins('check', folder), {
    name: 'greeter',
    version: '1.0.0',
    replaces: null,
  })
  assert.is(await greeting(server), 404, 'a check changes nothing')
  const loaded = await plugins('load', folder)
  assert.equal(
    [loaded['name'], loaded['state'], loaded['source']],
    ['greeter', 'serving', join(folder, 'plugin.js')],
  )
  assert.is(await greeting(server), 'one')
  write('two', '1.1.0')
  assert.is(await greeting(server), 'one', 'nothing happens by itself')
  const reloaded = await plugins('reload', 'greeter')
  assert.equal([reloaded['version'], reloaded['previous']], ['1.1.0', '1.0.0'])
  assert.is(await greeting(server), 'two', 'what it imports is read anew too')
  await plugins('rollback', 'greeter')
  assert.is(await greeting(server), 'one')
  await plugins('rollback', 'greeter')
  assert.is(await greeting(server), 'two')
  await plugins('unload', 'greeter')
  assert.is(await greeting(server), 404)
})

test('at each step, what fails leaves the old one serving and names the culprit', async () => {
  write('kept')
  await plugins('load', folder)
  const goes = /greeter 1\.0\.0 \(generation \d+\) goes on serving\./
  for (const [change, culprit] of [
    [
      () => writeFileSync(join(folder, 'words.js'), 'export const words = '),
      /plugin\.js cannot be imported/,
    ],
    [
      () => writeFileSync(join(folder, 'words.js'), 'export const others = 1'),
      /plugin\.js cannot be imported: .*'\.\/words\.js' does not provide an export named 'words'/,
    ],
    [
      () => writeFileSync(join(folder, 'plugin.js'), 'export const nothing = 1'),
      /no plugin as its default export/,
    ],
    [
      () => write('x', '2.0.0', "kernel: '^9.0.0',"),
      /greeter 2\.0\.0 asks for kernel \^9\.0\.0; this is/,
    ],
    [
      () =>
        write('x', '2.0.0', "uses: { moon: { id: 'port:moon', kind: 'port', version: '1.0.0' } },"),
      /greeter needs port:moon/,
    ],
    [
      () =>
        write(
          'x',
          '2.0.0',
          "commands: { verify: { summary: '', options: {}, run: async () => 1 } },",
        ),
      /The command verify is claimed by/,
    ],
    [
      () =>
        write(
          'x',
          '2.0.0',
          "config: { type: 'object', required: ['key'], properties: { key: { type: 'string' } } },",
        ),
      /GREETER_KEY: is required/,
    ],
    [
      () =>
        write('x', '2.0.0', "services: { broken: () => { throw new Error('no such thing') } },"),
      /greeter 2\.0\.0 cannot be built: no such thing/,
    ],
    [
      () => write('x', '2.0.0', "start: () => { throw new Error('no such socket') },"),
      /greeter 2\.0\.0 cannot be built: no such socket/,
    ],
    [
      () =>
        write(
          'x',
          '2.0.0',
          "contract: { 'GET /greeting': { summary: '', auth: 'public', reply: 'none', " +
            "body: { type: 'nonsense' } } },",
        ),
      /greeter 2\.0\.0 cannot offer GET \/greeting: /,
    ],
    [
      () => write('x', '2.0.0', "health: async () => { throw new Error('cannot reach it') },"),
      /greeter 2\.0\.0 is not healthy: cannot reach it/,
    ],
    [() => write('x', '2.0.0', "name: 'stranger',"), /now says that it is stranger/],
  ] as const) {
    change()
    const sentence = await refused('reload', 'greeter')
    assert.match(sentence, culprit)
    assert.match(sentence, goes)
    assert.is(sentence.split('\n').length, 1)
    assert.is(await greeting(server), 'kept')
    write('kept')
  }
  assert.match(await refused('reload', 'nobody'), /plugin "nobody"/)
  assert.match(await refused('load', join(home, 'nowhere')), /There is nothing at/)
  assert.match(await refused('load', folder), /serves already/)
  assert.match(await refused('unload', 'files'), /needs service:\w+, and nothing provides it/)
})

test('a restart keeps what was loaded or unloaded; SIGHUP reads folders again', async () => {
  await plugins('unload', 'tools')
  await server.kill('SIGTERM')
  server = await startProcess(env)
  assert.is(await greeting(server), 'kept')
  const states = async () =>
    Object.fromEntries(
      ((await plugins('list'))['plugins'] as { name: string; state: string }[]).map(
        ({ name, state }) => [name, state],
      ),
    )
  assert.equal([(await states())['tools'], (await states())['greeter']], ['off', 'serving'])
  await plugins('load', 'tools')
  assert.is((await states())['tools'], 'serving')
  write('after the signal')
  server.child.kill('SIGHUP')
  await until(async () => (await greeting(server)) === 'after the signal')
  rmSync(folder, { recursive: true })
  await server.kill('SIGTERM')
  server = await startProcess(env)
  const gone = ((await plugins('list'))['plugins'] as { state: string; detail: string }[]).find(
    ({ state }) => state === 'failed',
  )
  assert.match(gone?.detail ?? '', /plugin\.js/, 'the rest serves, and the list says what does not')
})

test('in development a changed file serves a moment later, and new folders too', async () => {
  const dir = join(home, 'mine')
  const watched = await startProcess({
    ...env,
    DATA_DIR: join(home, 'watched'),
    PLUGINS_DIR: dir,
    PLUGINS_WATCH: 'true',
  }).catch((error: Error) => error.message)
  assert.match(String(watched), /PLUGINS_DIR/, 'a folder that is not there is refused')
  mkdirSync(dir)
  const process = await startProcess({
    ...env,
    DATA_DIR: join(home, 'watched'),
    PLUGINS_DIR: dir,
    PLUGINS_WATCH: 'true',
  })
  write('first')
  cpSync(folder, join(dir, 'greeter'), { recursive: true })
  await until(async () => (await greeting(process)) === 'first')
  writeFileSync(join(dir, 'greeter', 'words.js'), "export const words = 'second'")
  await until(async () => (await greeting(process)) === 'second')
  await process.kill('SIGTERM')
})

test('over HTTP the operator alone, with the token', async () => {
  const call = (method: string, path: string, auth: string | undefined, body?: object) =>
    fetch(`${server.base}/operator/plugins${path}`, {
      method,
      headers: {
        ...(auth ? { authorization: `Bearer ${auth}` } : {}),
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    })
  for (const wrong of [undefined, 'nonsense', token.slice(0, -1)])
    assert.is((await call('GET', '', wrong)).status, 401)
  write('over HTTP')
  assert.is((await call('POST', '', token, { source: folder })).status, 201)
  assert.is(await greeting(server), 'over HTTP')
  const { items } = (await (await call('GET', '', token)).json()) as { items: { name: string }[] }
  assert.ok(items.some(({ name }) => name === 'runs'))
  assert.is((await call('POST', '/tools/reload', token)).status, 200)
  assert.is(
    (await call('POST', '/operator/reload', token)).status,
    200,
    'the plugin that answers is replaced while it answers',
  )
  const nobody = await call('POST', '/nobody/reload', token)
  assert.equal(
    [nobody.status, ((await nobody.json()) as { detail: string }).detail],
    [404, 'There is no such plugin "nobody".'],
  )
  const needed = await call('DELETE', '/files', token)
  assert.is(needed.status, 409)
})

test('what acts on a living server says so where there is none', async () => {
  const { code, err } = await runMain(['plugins', 'reload', 'runs'], {
    DATA_DIR: join(home, 'nobody'),
  })
  assert.equal(
    [code, err.trim()],
    [1, `No server runs on ${join(home, 'nobody')}: plugins reload acts on a living one.`],
  )
})

test.after(async () => {
  await endProcesses()
  rmSync(home, { recursive: true, force: true })
})
test.run()
