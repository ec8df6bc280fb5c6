// A plugin that ends the process again and again is left out, and the rest serves.
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { PluginStatus } from '#kernel'
import { createCrashes } from '../../../kernel/loading/crashes.ts'
import { builtInDir } from '../../../kernel/loading/sources.ts'
import { commandLine, endProcesses, startProcess } from '../../support/process.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-crashes-'))
function write(folder: string, name: string, text: string): string {
  mkdirSync(join(folder, name), { recursive: true })
  writeFileSync(join(folder, name, 'package.json'), '{ "type": "module" }')
  writeFileSync(
    join(folder, name, 'plugin.js'),
    `import { definePlugin } from 'agent-platform/plugin'\nimport { SystemClock } from ` +
      `'agent-platform/ports/clock'\n${text}`,
  )
  return join(folder, name, 'plugin.js')
}
const plugin = (name: string, more = '') =>
  `export default definePlugin({ name: '${name}', version: '1.0.0', kernel: '^1.0.0', ${more} })`
const failed = async (env: Record<string, string>) =>
  (await commandLine<{ plugins: PluginStatus[] }>(['plugins', 'list'], env)).plugins.filter(
    ({ state }) => state === 'failed',
  )

test('after ending two processes from a timer it is left out until it changes', async () => {
  const plugins = join(home, 'late')
  const env = { DATA_DIR: join(home, 'late-data'), PLUGINS_DIR: plugins }
  const entry = write(
    plugins,
    'late',
    `${plugin(
      'late',
      'uses: { clock: SystemClock }, start: ({ clock }) => { setTimeout(() => { throw new ' +
        `Error('too late to catch') }, 700) }`,
    )}`,
  )
  write(plugins, 'sound', plugin('sound'))
  for (let life = 1; life <= 2; life++) {
    const { child, errors } = await startProcess(env)
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
    assert.ok(
      errors().includes('"plugin.crashed"') && errors().includes('"plugin":"late"'),
      errors(),
    )
  }
  const third = await startProcess(env)
  const [row, ...others] = await failed(env)
  assert.equal([row!.name, row!.source, others.length], ['late', entry, 0])
  assert.match(
    row!.detail,
    /It ended the process 2 times within 24 h \(too late to catch\), and is left out/,
  )
  await new Promise(resolve => setTimeout(resolve, 900))
  assert.is((await fetch(`${third.base}/healthz`)).status, 200)
  write(plugins, 'late', `// mended\n${plugin('late')}`)
  const reconciled = once(third.child.stdout!, 'data').catch(() => undefined)
  third.child.kill('SIGHUP')
  await Promise.race([reconciled, new Promise(resolve => setTimeout(resolve, 1500))])
  assert.equal(await failed(env), [], 'its files have changed: it is tried again')
  await third.kill('SIGTERM')
})

test('one that ends the process while it is imported is left out too', async () => {
  const plugins = join(home, 'exits')
  const env = { DATA_DIR: join(home, 'exits-data'), PLUGINS_DIR: plugins }
  write(plugins, 'exits', `process.exit(3)\n${plugin('exits')}`)
  for (let life = 1; life <= 2; life++)
    assert.match(
      await startProcess(env).then(
        () => 'it serves',
        () => 'it ended',
      ),
      /it ended/,
    )
  const third = await startProcess(env)
  assert.match(
    (await failed(env))[0]!.detail,
    /It ended the process 2 times within 24 h \(the process ended while it was loaded\)/,
  )
  await third.kill('SIGTERM')
})

test("a stack names its innermost file in the folder of a plugin not the platform's own", () => {
  let now = 1_000_000
  const dataDir = mkdtempSync(join(home, 'unit-'))
  const folder = mkdtempSync(join(home, 'project-'))
  const entry = write(folder, 'mine', plugin('mine'))
  const other = write(folder, 'other', plugin('other'))
  const make = () =>
    createCrashes({
      dataDir,
      now: () => now,
      log: () => undefined,
      endsMax: 2,
      withinMs: 3_600_000,
    })
  const crashes = make()
  const serving = [
    { entry, name: 'mine' },
    { entry: other, name: 'other' },
    { entry: join(builtInDir, 'runs/plugin.ts'), name: 'runs' },
    { entry: '', name: 'given' },
  ]
  const thrown = (...files: string[]) =>
    Object.assign(new Error('x'), {
      stack: `Error: x\n${files.map(file => `    at f (${file}:3:7)`).join('\n')}`,
    })
  const url = (path: string) => `file://${path}?gen=0190.1`
  assert.is(
    crashes.record(
      thrown('node:internal/timers', url(join(builtInDir, 'runs/engine/loop.ts'))),
      serving,
    ),
    undefined,
    'the platform itself is never left out',
  )
  assert.is(crashes.record('only a text', serving), undefined)
  const first = thrown(url(join(builtInDir, 'runs/engine/loop.ts')), url(entry), url(other))
  assert.equal(
    [crashes.record(first, serving), crashes.record(first, serving)],
    ['mine', 'mine'],
    'handed on twice, it is one end',
  )
  assert.is(crashes.refusal(entry), undefined, 'once is not twice')
  assert.is(
    make().record(thrown(`${folder}/mine/node_modules/dependency/index.js`), serving),
    'mine',
    'what it brings along is its own',
  )
  assert.match(make().refusal(entry)!.why, /2 times/)
  assert.is(make().refusal(other), undefined)
  now += 3_600_001
  assert.is(make().refusal(entry), undefined, 'it is forgotten after a while')
})

test('a load that a stop or a refusal ends is no crash', async () => {
  const dataDir = mkdtempSync(join(home, 'during-'))
  const entry = write(dataDir, 'mine', plugin('mine'))
  const make = () =>
    createCrashes({ dataDir, now: () => 5, log: () => undefined, endsMax: 1, withinMs: 1000 })
  const crashes = make()
  await crashes.during(entry, () => Promise.reject(new Error('refused'))).catch(() => undefined)
  assert.is(make().refusal(entry), undefined)
  void crashes.during(entry, () => new Promise(() => undefined))
  assert.match(make().refusal(entry)!.why, /the process ended while it was loaded/)
  const next = make()
  next.forget(entry)
  assert.is(make().refusal(entry), undefined)
})

test.after(async () => {
  await endProcesses()
  rmSync(home, { recursive: true, force: true })
})
test.run()
