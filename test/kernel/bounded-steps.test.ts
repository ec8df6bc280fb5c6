// A plugin whose code never ends holds up neither the next change nor the stop.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, into, point, type Plugin } from '#kernel'
import { collection } from '#ports/storage.ts'
import { memoryStorage } from '../../adapters/storage/memory.ts'
import { endServers, startServer } from '../conformance/plugin/server.ts'

const never = () => new Promise<never>(() => undefined)
const Words = point<string>('words')
const base = { version: '1.0.0', kernel: '^1.0.0' } as const
const sound = definePlugin({ name: 'sound', ...base })
const env = { PLUGIN_STEP_MS: '150', PLUGIN_DEFINE_MS: '150', DRAIN_MS: '200' }
const refusalOf = (change: Promise<unknown>) =>
  change.then(
    () => 'it was loaded',
    (error: Error) => error.message,
  )
/** A hang is told as one, long before the runner would notice. */
const inTime = <T>(what: Promise<T>): Promise<T> =>
  Promise.race([
    what,
    new Promise<never>((_, fail) => setTimeout(fail, 20_000, new Error('it still waits')).unref()),
  ])

const hung = (more: Partial<Plugin>) => ({ name: 'hung', ...base, ...more }) as Plugin
for (const [why, plugin, sentence] of [
  [
    'start',
    hung({ start: never }),
    /^hung 1\.0\.0 cannot be built: its start took longer than 150 ms \(PLUGIN_STEP_MS\)$/,
  ],
  [
    'item',
    hung({ contributes: [into(Words, never as never)] }),
    /^hung 1\.0\.0 cannot be built: making what it contributes took longer than 150 ms/,
  ],
  [
    'health',
    hung({ health: never }),
    /^hung 1\.0\.0 is not healthy: its health took longer than 150 ms/,
  ],
] as const)
  test(`a plugin whose ${why} never ends is refused, and the next change goes on`, async () => {
    const server = await startServer({ plugins: [sound], env })
    const refused = refusalOf(server.kernel.applyPlugins([sound, plugin]))
    const next = server.kernel.applyPlugins([sound])
    assert.match(await inTime(refused), sentence)
    await inTime(next)
    await server.stop()
  })

test('a collection whose definition never ends', async () => {
  const storage = memoryStorage({ now: Date.now } as never)
  const given = {
    storage: {
      ...storage,
      define: (spec: { name: string }) =>
        spec.name === 'slow' ? never() : storage.define(spec as never),
    },
  }
  const server = await startServer({ plugins: [sound], env, given })
  const slow = hung({ collections: [collection({ name: 'slow', scope: 'platform' })] })
  assert.match(
    await inTime(refusalOf(server.kernel.applyPlugins([sound, slow]))),
    /defining the collection slow took longer than 150 ms \(PLUGIN_DEFINE_MS\)/,
  )
  await server.stop()
})

test('an import that never ends, and another change beside it', async () => {
  const home = mkdtempSync(join(tmpdir(), 'agent-platform-steps-'))
  const write = (name: string, text: string) => {
    mkdirSync(join(home, name))
    writeFileSync(
      join(home, name, 'plugin.mjs'),
      `import { definePlugin } from 'agent-platform/plugin'\n${text}\nexport default ` +
        `definePlugin({ name: '${name}', version: '1.0.0', kernel: '^1.0.0' })`,
    )
    return join(home, name, 'plugin.mjs')
  }
  const server = await startServer({ plugins: [sound], env })
  const refused = refusalOf(
    server.pluginRegistry.load(write('endless', 'await new Promise(() => undefined)')),
  )
  const next = server.pluginRegistry.load(write('good', ''))
  assert.match(await inTime(refused), /its import took longer than 150 ms/)
  assert.is((await inTime(next)).state, 'serving')
  await server.stop()
  rmSync(home, { recursive: true, force: true })
})

test('a stop ends a start that is under way, and does not wait for its limit', async () => {
  const server = await startServer({ plugins: [sound], env: { ...env, PLUGIN_STEP_MS: '600000' } })
  const begun = Promise.withResolvers<void>()
  const start = () => (begun.resolve(), never())
  const refused = refusalOf(server.kernel.applyPlugins([sound, hung({ start })]))
  await begun.promise
  await inTime(server.stop())
  assert.match(await inTime(refused), /the platform is being stopped/)
})

test('an undo that never ends is left behind, and those before it are still undone', async () => {
  const undone: string[] = []
  const server = await startServer({
    plugins: [
      sound,
      hung({
        start: (({ defer }: { defer: (undo: () => unknown) => void }) => {
          defer(() => undone.push('first'))
          defer(never)
        }) as never,
      }),
    ],
    env,
  })
  await inTime(server.kernel.applyPlugins([sound]).then(({ drained }) => drained))
  assert.equal(undone, ['first'])
  assert.ok(
    server.logged.some(
      line => line.includes('"plugin.undo"') && line.includes('an undo took longer than 150 ms'),
    ),
    server.logged.join(),
  )
  await server.stop()
})

test('what a start does after it was given up is undone at once', async () => {
  let go = () => {}
  const gate = new Promise<void>(open => {
    go = open
  })
  const undone: string[] = []
  const late = hung({
    start: (async ({ defer }: { defer: (undo: () => unknown) => void }) => {
      await gate
      defer(() => undone.push('late'))
      undone.push('never reached')
    }) as never,
  })
  const server = await startServer({ plugins: [sound], env })
  assert.match(
    await inTime(refusalOf(server.kernel.applyPlugins([sound, late]))),
    /its start took longer/,
  )
  go()
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(undone, ['late'])
  await server.stop()
})

test.after(endServers)
test.run()
