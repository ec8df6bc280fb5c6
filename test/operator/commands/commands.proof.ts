// Commands: beside a living server they run inside it, else in a kernel of their own.
import { connect } from 'node:net'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { socketPath } from '../../../kernel/cli/admin.ts'
import { commandLine, endProcesses, runMain, signUp, startProcess } from '../../support/process.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-commands-'))
const createUser = ['admin', 'create-user', '--email']

test('create-user makes an account without a server and beside one', async () => {
  const env = { DATA_DIR: join(home, 'accounts') }
  const alone = await commandLine<Record<string, string>>(
    [...createUser, 'one@example.org', '--credits', '7'],
    env,
  )
  assert.equal(Object.keys(alone), ['user_id', 'org_id', 'api_key'])
  assert.match(alone['api_key']!, /^sk_live_/)
  const server = await startProcess(env)
  const beside = await signUp(server.base, env, 9)
  const balance = await (
    await fetch(`${server.base}/balance`, { headers: { authorization: `Bearer ${beside.token}` } })
  ).json()
  assert.equal(balance, { balance: 9, held: 0, available: 9 })
  assert.is(
    (
      await fetch(`${server.base}/auth/token`, {
        method: 'POST',
        headers: { 'x-api-key': alone['api_key']! },
      })
    ).status,
    200,
    'the first account is there',
  )
  await server.kill('SIGTERM')
})

test("a second server on a living one's folder is refused, whatever the storage", async () => {
  const env = { DATA_DIR: join(home, 'shared'), STORAGE_URL: 'memory:' }
  const server = await startProcess(env)
  const { code, err } = await runMain(['start'], env)
  assert.is(code, 1)
  assert.match(err, /^DATA_DIR: another server runs on it/)
  assert.match(
    (await commandLine<{ user_id: string }>([...createUser, 'one@example.org'], env)).user_id,
    /^[0-9a-f-]{36}$/,
  )
  await server.kill('SIGTERM')
})

test('a plugin from elsewhere neither stops nor replaces a command of the platform', async () => {
  const env = { DATA_DIR: join(home, 'broken') }
  mkdirSync(env.DATA_DIR)
  const entry = join(env.DATA_DIR, 'broken.mjs')
  writeFileSync(join(env.DATA_DIR, 'plugins.json'), JSON.stringify({ loaded: [entry], off: [] }))
  const options = "options: { type: 'object', properties: { from: { type: 'string' } } }"
  const posing = `{ summary: '', ${options}, offline: true, run: async () => ({ ok: true }) }`
  for (const text of [
    'await new Promise(() => undefined)',
    'process.exit(0)',
    "export default { name: 'broken', version: '1.0.0', commands: { broken: null } }",
    `export default { name: 'broken', version: '1.0.0', commands: { restore: ${posing} } }`,
  ]) {
    writeFileSync(entry, text)
    const { code, err } = await runMain(['restore', '--from', join(home, 'nowhere')], env)
    assert.match(err, 'holds no backup', text)
    assert.is(code, 1)
  }
})

test('a command that is not understood says why, alike with a server and without', async () => {
  const env = { DATA_DIR: join(home, 'mistakes') }
  const server = await startProcess(env)
  await commandLine([...createUser, 'one@example.org'], env)
  for (const served of [true, false]) {
    if (!served) await server.kill('SIGTERM')
    for (const [args, sentence] of [
      [[...createUser, 'One@example.org', '--json'], /there is an account with this e-mail/],
      [['admin', 'create-user'], /^email: is required/],
      [[...createUser, 'two@example.org', '--credits', 'many'], /^credits: must be integer/],
      [[...createUser, 'two@example.org', '--credit', '5'], /'--credit'/],
      [
        ['admin', 'make-coffee'],
        new RegExp(
          String.raw`^There is no command "admin make-coffee"\. There are: ` +
            'adapters add, adapters check, adapters list, adapters remove, admin create-user, ' +
            'backup, plugins add, plugins check, plugins enable, plugins isolate, plugins list, ' +
            'plugins load, plugins reload, plugins remove, plugins rollback, plugins unload, ' +
            String.raw`reindex, restore, start, storage copy, verify\.`,
        ),
      ],
    ] as const) {
      const { code, out, err } = await runMain(args, env)
      assert.match(err, sentence)
      assert.is(code, 1)
      assert.is(err.trim().split('\n').length, 1, 'one sentence, no stack trace')
      assert.is(
        out.trim(),
        args.includes('--json' as never) ? JSON.stringify({ error: err.trim() }) : '',
      )
    }
  }
})

test('nonsense on the admin socket is refused and harms nobody', async () => {
  const env = { DATA_DIR: join(home, 'socket') }
  const server = await startProcess(env)
  const say = (...parts: (string | Uint8Array)[]) =>
    new Promise<{ ok: boolean; error?: string; result?: unknown }>((done, failed) => {
      const socket = connect(socketPath(env.DATA_DIR))
      const heard: string[] = []
      socket
        .on('data', part => heard.push(String(part)))
        .on('close', () => done(JSON.parse(heard.join('') || 'null')))
        .on('error', failed)
      const next = (): unknown =>
        parts.length > 0 ? (socket.write(parts.shift()!), setTimeout(next, 20)) : undefined
      next()
    })
  for (const nonsense of [
    'this is no JSON\n',
    '\n',
    '{"command":7}\n',
    'null\n',
    '[]\n',
    '{"command":"admin create-user","options":[]}\n',
    '{"command":"admin create-user","options":{"email":{}}}\n',
  ])
    assert.is((await say(nonsense)).ok, false, nonsense)
  assert.match((await say(`${'x'.repeat((1 << 20) + 1)}\n`, 'x')).error!, /at most \d+ characters/)
  assert.match(
    (await say('x'.repeat(3 << 20))).error!,
    /at most \d+ characters/,
    'without waiting for the end of the line',
  )
  const silent = connect(socketPath(env.DATA_DIR))
  const letters = Buffer.from(
    '{"command":"admin create-user","options":{"email":"zoë@example.org"}}\n',
  )
  const middle = letters.indexOf('ë') + 1
  assert.is((await say(letters.subarray(0, middle), letters.subarray(middle))).ok, true)
  assert.match(
    (await say(letters)).error!,
    /there is an account/,
    'a letter that arrived in two parts was one',
  )
  assert.is((await fetch(`${server.base}/healthz`)).status, 200)
  await server.kill('SIGTERM')
  assert.is(server.child.exitCode, 0, 'nobody who only holds the socket keeps the server')
  silent.destroy()
})

test.after(async () => {
  await endProcesses()
  rmSync(home, { recursive: true, force: true })
})
test.run()
