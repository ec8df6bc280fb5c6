// `npm run new plugin <name>` makes what passes its own tests at once, types included.
import { execFile } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const repository = resolve(import.meta.dirname, '../..')
/** Inside the repository, where its imports resolve. */
const dir = join(repository, 'test/examples/made')
const make = (...args: string[]) =>
  promisify(execFile)(process.execPath, ['test/new.ts', ...args], {
    cwd: repository,
    env: { ...process.env, NEW_PLUGIN_DIR: dir },
  })

test('a new plugin passes its tests at once', async () => {
  mkdirSync(dir, { recursive: true })
  const { stdout } = await make('plugin', 'parcels')
  assert.match(stdout, /test\/examples\/made\/parcels is made/)
  const ran = await promisify(execFile)(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', join(dir, 'parcels/parcels.test.ts')],
    { cwd: repository },
  )
  assert.match(ran.stdout, /Passed: +8/)
})

test('what is there already, and a name that is none, are refused with a sentence', async () => {
  for (const [args, sentence] of [
    [['plugin', 'parcels'], /parcels is there already\./],
    [['plugin', '../evil'], /is called by one word/],
    [['plugin'], /is called by one word/],
    [['thing'], /npm run new plugin <name>/],
  ] as const) {
    const error = await make(...args).then(
      () => undefined,
      (failed: { code: number; stderr: string }) => failed,
    )
    assert.is(error?.code, 1)
    assert.match(error!.stderr, sentence)
  }
})

test.after(() => rmSync(dir, { recursive: true, force: true }))
test.run()
