// The launcher on a machine whose Node is older, before anything of ours could run there.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const root = resolve(import.meta.dirname, '../../..')
const home = mkdtempSync(join(tmpdir(), 'agent-platform-launch-'))
const oldNode = ['/usr/bin/node', '/usr/local/bin/node'].find(
  path =>
    Number(
      /^v(\d+)/.exec(spawnSync(path, ['--version'], { encoding: 'utf8' }).stdout ?? '')?.[1] ?? 99,
    ) < 24,
)
const whereOld = oldNode ? test : test.skip
whereOld('on an older Node, with install scripts disabled, the launcher says what to do', () => {
  const folder = join(home, 'checkout')
  mkdirSync(join(folder, 'kernel'), { recursive: true })
  mkdirSync(join(folder, 'node_modules'))
  for (const name of ['package.json', 'package-lock.json', 'kernel/launch.mjs'])
    copyFileSync(join(root, name), join(folder, name))
  writeFileSync(join(folder, 'node_modules/.package-lock.json'), '{}')
  const { status, stderr } = spawnSync(oldNode!, ['kernel/launch.mjs', 'kernel/main.ts', 'start'], {
    cwd: folder,
    encoding: 'utf8',
    env: { PATH: '/usr/bin:/bin' },
  })
  assert.is(status, 1)
  assert.match(stderr, /runs on Node 24 or newer[\s\S]*npm rebuild node --ignore-scripts=false/)
  assert.not.match(stderr, /SyntaxError/)
})

test('a signal that ends the shell before the program, as of npm, ends the server', async () => {
  const env = {
    ...process.env,
    HOST: '127.0.0.1',
    PORT: '0',
    DATA_DIR: join(home, 'data'),
    LOG_LEVEL: 'error',
    npm_lifecycle_event: 'start',
  }
  const shell = spawn(
    'sh',
    ['-c', `"${process.execPath}" kernel/launch.mjs kernel/main.ts start; true`],
    { cwd: root, env, stdio: ['ignore', 'pipe', 'ignore'] },
  )
  const said: string[] = []
  const serving = new Promise<void>(found =>
    shell.stdout.on('data', (part: Buffer) => {
      if (said.push(String(part)) && said.join('').includes('Serving')) found()
    }),
  )
  // The pipe ends when the last process that holds it has.
  const ended = once(shell.stdout, 'close')
  await serving
  shell.kill('SIGTERM')
  await Promise.race([
    ended,
    new Promise((_, fail) => setTimeout(fail, 30_000, new Error('the server still runs')).unref()),
  ])
})

test.after(() => rmSync(home, { recursive: true, force: true }))
test.run()
