// What an operator relies on in DATA_DIR: who may open it, which versions may, and its modes.
import { DatabaseSync } from 'node:sqlite'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { endProcesses, runMain, startProcess } from '../../support/process.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-folder-'))
const folder = (name: string) => join(home, name)
const refused = async (env: Record<string, string>, sentence: RegExp) => {
  const { code, out, err } = await runMain(['start'], env)
  assert.match(err, sentence)
  assert.equal([code, out], [1, ''])
  assert.is(err.trim().split('\n').length, 1, 'one sentence, no stack trace')
}

test('nobody else on the machine may look in, whoever made the folder', async () => {
  const dataDir = folder('private')
  mkdirSync(dataDir)
  chmodSync(dataDir, 0o755)
  writeFileSync(join(dataDir, 'platform.db'), '')
  chmodSync(join(dataDir, 'platform.db'), 0o644)
  const server = await startProcess({ DATA_DIR: dataDir })
  const outbox = join(dataDir, 'outbox')
  await fetch(`${server.base}/auth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"email":"a@example.org","password":"correct horse"}',
  })
  const letters = () => readdirSync(outbox).filter(name => name.endsWith('.eml'))
  for (let tries = 0; tries < 100 && letters().length === 0; tries++)
    await new Promise(resolve => setTimeout(resolve, 20))
  assert.is(letters().length, 1)
  const found = readdirSync(dataDir, { recursive: true, encoding: 'utf8' })
  for (const name of [
    'platform.db',
    'platform.db-wal',
    'platform.db.lock',
    'auth.secret',
    'admin.sock',
    `outbox/${letters()[0]}`,
  ])
    assert.ok(found.includes(name), name)
  for (const name of ['.', ...found]) {
    const state = statSync(join(dataDir, name))
    assert.is((state.mode & 0o777).toString(8), state.isDirectory() ? '700' : '600', name)
  }
  await server.kill('SIGTERM')
})

test('a second server on the same folder is refused, and the first one lives', async () => {
  const env = { DATA_DIR: folder('one') }
  const server = await startProcess(env)
  await refused(env, /platform\.db is not available: another server has it open/)
  assert.is((await fetch(`${server.base}/healthz`)).status, 200)
  await server.kill('SIGKILL')
  await (await startProcess(env)).kill('SIGTERM')
  assert.is(
    readdirSync(env.DATA_DIR).includes('admin.sock'),
    false,
    'a stop takes its socket along',
  )
})

test('a folder of a newer program is refused, and left as it is', async () => {
  const env = { DATA_DIR: folder('newer') }
  await (await startProcess(env)).kill('SIGTERM')
  const path = join(env.DATA_DIR, 'platform.db')
  const raise = new DatabaseSync(path)
  raise.exec('PRAGMA user_version = 999')
  raise.close()
  const before = readFileSync(path)
  await refused(
    env,
    new RegExp(
      String.raw`its format is 999 and this program knows formats up to \d+\. ` +
        'Start the newer program, or restore a backup',
    ),
  )
  assert.ok(readFileSync(path).equals(before))
})

test('a file that is no database of ours is refused, and left as it is', async () => {
  const env = { DATA_DIR: folder('foreign') }
  const path = join(env.DATA_DIR, 'platform.db')
  const diary = 'this is a diary\n'.repeat(100)
  mkdirSync(env.DATA_DIR)
  writeFileSync(path, diary)
  await refused(env, /platform\.db is not available/)
  assert.is(readFileSync(path, 'utf8'), diary)
})

test.after(async () => {
  await endProcesses()
  rmSync(home, { recursive: true, force: true })
})
test.run()
