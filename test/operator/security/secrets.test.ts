// What is secret stays out of the log, whatever level it is read at.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createLog } from '../../../kernel/telemetry/log.ts'
import { endProcesses, signUp, startProcess } from '../../support/process.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-secrets-'))

test('signing up, in and out, rightly and wrongly, leaves no secret in the log', async () => {
  const env = {
    DATA_DIR: join(home, 'data'),
    LOG_LEVEL: 'debug',
    AUTH_SECRET: 'the-secret-that-signs-access-tokens-here',
  }
  const server = await startProcess(env)
  const { apiKey, token } = await signUp(server.base, env, 10)
  const post = async (
    path: string,
    body: object,
    bearer?: string,
  ): Promise<Record<string, string>> => {
    const response = await fetch(server.base + path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(bearer ? { authorization: `Bearer ${bearer}` } : {}),
      },
      body: JSON.stringify(body),
    })
    assert.ok(response.status < 500, `${path} ${response.status}`)
    return response.status === 204 ? {} : ((await response.json()) as Record<string, string>)
  }
  const email = 'b@example.org'
  const password = 'correct horse battery'
  const outbox = join(env.DATA_DIR, 'outbox')
  await post('/auth/register', { email, password })
  const lettersOf = () => readdirSync(outbox).filter(name => name.endsWith('.eml'))
  for (let tries = 0; tries < 100 && lettersOf().length === 0; tries++)
    await new Promise(resolve => setTimeout(resolve, 20))
  const code = /code is (\d{6})/.exec(readFileSync(join(outbox, lettersOf()[0]!), 'utf8'))![1]!
  await post('/auth/verify', { email, code: code === '111111' ? '222222' : '111111' })
  const signedIn = await post('/auth/verify', { email, code })
  await post('/auth/login', { email, password: 'wrong horse battery' })
  const login = await post('/auth/login', { email, password })
  const refreshed = await post('/auth/refresh', { refresh_token: login['refresh_token']! })
  await post('/auth/refresh', { refresh_token: `${login['refresh_token']}x` })
  await post('/auth/token', { api_key: `${apiKey}x` })
  await post('/auth/token', { api_key: apiKey }, `${token}x`)
  const key = await post('/api-keys', { name: 'k' }, token)
  await post('/chat', { message: '[[fail_after=0]] wrong horse battery' }, token)
  await post('/auth/logout', { refresh_token: refreshed['refresh_token']! }, login['access_token'])
  await server.kill('SIGTERM')
  const log = server.errors()
  assert.match(log, /"event":"stopping"/, 'the log was read')
  const secrets = [
    apiKey,
    token,
    key['secret']!,
    signedIn['refresh_token']!,
    refreshed['access_token']!,
    refreshed['refresh_token']!,
    password,
    'wrong horse',
    env.AUTH_SECRET,
    'sk_live_',
    'eyJ',
  ]
  for (const secret of secrets)
    assert.ok(secret && !log.includes(secret), `the log holds ${secret}`)
  assert.not.match(log, new RegExp(`\\b${code}\\b`))
})

test('a report of a silent mail server holds neither its password nor the letter', async () => {
  const env = {
    DATA_DIR: join(home, 'mail'),
    LOG_LEVEL: 'debug',
    MAIL_URL: 'smtp://mailer:hunter2hunter2@127.0.0.1:9',
  }
  const server = await startProcess(env)
  await fetch(`${server.base}/auth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{"email":"c@example.org","password":"correct horse"}',
  })
  for (let tries = 0; tries < 100 && !server.errors().includes('mail.'); tries++)
    await new Promise(resolve => setTimeout(resolve, 20))
  await server.kill('SIGTERM')
  assert.match(server.errors(), /mail\./)
  assert.not.match(server.errors(), /hunter2|correct horse|code is/)
})

test('the log removes whatever looks like a secret, however deep it lies', () => {
  const lines: string[] = []
  const log = createLog({ level: 'debug', now: () => 0, write: line => lines.push(line) })
  const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl'
  const key = 'sk_live_0123456789abcdef'
  const cyclic: Record<string, unknown> = { key }
  cyclic['itself'] = cyclic
  log('info', 'x', {
    plain: `Bearer ${jwt}`,
    password: 'hunter2',
    list: [key, { headers: { authorization: 'Basic hunter2', cookie: 'hunter2' } }],
    map: { [key]: 1 },
    cyclic,
    big: 1n,
    error: new Error(`with ${key}`, {
      cause: new Error('inner', { cause: new Error(`redis://ann:hunter2@host and ${jwt}`) }),
    }),
  })
  assert.is(lines.length, 1)
  assert.not.match(lines[0]!, /hunter2|0123456789abcdef|eyJ/)
  assert.match(lines[0]!, /inner/, 'what is no secret stays')
})

test.after(async () => {
  await endProcesses()
  rmSync(home, { recursive: true, force: true })
})
test.run()
