import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import jwt from 'jsonwebtoken'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { manualClock } from '#adapters/clock/manual.ts'
import { memoryMail } from '#adapters/mail/memory.ts'
import type { StorageEngine } from '#ports/storage.ts'
import { definePlugin } from '#kernel'
import { loadPlugins } from '../../../kernel/loading/sources.ts'
import { startServer } from '../../../test/conformance/plugin/server.ts'
import { codeOf } from '../../../test/support/identity-kit.ts'
import { Accounts, type AccountsApi } from '../api.ts'
import { Memberships, Users } from '../collections.ts'
import { createPasswords } from '../passwords/passwords.ts'
import { createSigningKey } from '../signin/signing-key.ts'

const secret = 'a secret of more than thirty-two characters'

/** A server, and the accounts service as another plugin sees it. */
async function served(given: Record<string, unknown> = {}) {
  const clock = manualClock()
  let accounts: AccountsApi | undefined
  const spy = definePlugin({
    name: 'spy',
    version: '1.0.0',
    kernel: '^1.0.0',
    uses: { accounts: Accounts },
    start: deps => {
      accounts = deps.accounts
    },
  })
  const server = await startServer({
    given: { clock, ...given },
    plugins: [...(await loadPlugins()), spy],
    env: { AUTH_SECRET: secret, LIMITS_TOKEN_PER_MINUTE: '1000' },
  })
  const me = (token: string) => server.call('GET', '/auth/me', { token })
  return { server, clock, me, accounts: accounts! }
}

test('a suspended user is refused everywhere with 403 until restored', async () => {
  const { server, me, accounts } = await served()
  const { user_id, token, api_key } = await server.account()
  assert.is((await me(token)).status, 200)
  assert.is(await accounts.suspend(user_id), true)
  assert.equal(await me(token).then(answer => [answer.status, codeOf(answer)]), [
    403,
    'ACCOUNT_SUSPENDED',
  ])
  assert.is(
    codeOf(await server.call('POST', '/auth/token', { body: { api_key } })),
    'ACCOUNT_SUSPENDED',
  )
  await accounts.restore(user_id)
  assert.is((await me(token)).status, 200)
  assert.is(await accounts.suspend('01890000-0000-7000-8000-000000000000'), false)
  await server.stop()
})
test('a higher token version ends access tokens, sign-ins and keys', async () => {
  const { server, me, accounts } = await served()
  await accounts.create({ email: 'ann@example.org', credits: 0, password: 'correct horse' })
  const pair = (
    await server.call('POST', '/auth/login', {
      body: { email: 'ann@example.org', password: 'correct horse' },
    })
  ).body as { access_token: string; refresh_token: string }
  const made = (
    await server.call('POST', '/api-keys', { token: pair.access_token, body: { name: 'ci' } })
  ).body as { secret: string }
  const { user_id } = (await me(pair.access_token)).body as { user_id: string }
  await accounts.endSessions(user_id)
  assert.is((await me(pair.access_token)).status, 401)
  assert.is(
    codeOf(
      await server.call('POST', '/auth/refresh', { body: { refresh_token: pair.refresh_token } }),
    ),
    'REFRESH_INVALID',
  )
  assert.is(
    codeOf(await server.call('POST', '/auth/token', { body: { api_key: made.secret } })),
    'KEY_INVALID',
  )
  await server.stop()
})
test('another process sees a suspension within ten seconds, a lost membership too', async () => {
  const here = await served()
  const there = await served({ storage: here.server.engine('storage'), clock: here.clock })
  const { user_id, token } = await here.server.account()
  assert.is((await there.me(token)).status, 200)
  await here.accounts.suspend(user_id)
  await here.clock.leap(9_999)
  assert.is((await there.me(token)).status, 200)
  await here.clock.leap(1)
  assert.is((await there.me(token)).status, 403)
  await here.accounts.restore(user_id)
  await here.server.engine<StorageEngine>('storage').removeMany(Memberships, { userId: user_id })
  await here.clock.leap(10_000)
  assert.is((await there.me(token)).status, 401)
  await there.server.stop()
  await here.server.stop()
})
test('a refresh token that two processes take at once gives each a pair', async () => {
  const here = await served()
  const there = await served({ storage: here.server.engine('storage'), clock: here.clock })
  await here.accounts.create({ email: 'ann@example.org', credits: 0, password: 'correct horse' })
  const { refresh_token } = (
    await here.server.call('POST', '/auth/login', {
      body: { email: 'ann@example.org', password: 'correct horse' },
    })
  ).body as { refresh_token: string }
  const answers = await Promise.all(
    [here, there].map(({ server }) =>
      server.call('POST', '/auth/refresh', { body: { refresh_token } }),
    ),
  )
  assert.equal(
    answers.map(({ status }) => status),
    [200, 200],
  )
  await there.server.stop()
  await here.server.stop()
})
test('the next sign-in completes an account that was half made, and credits it once', async () => {
  const { server, accounts } = await served()
  await accounts.create({ email: 'ann@example.org', credits: 70, password: 'correct horse' })
  const engine = server.engine<StorageEngine>('storage')
  const {
    items: [user],
  } = await engine.find(Users, { where: { email: 'ann@example.org' } })
  await engine.removeMany(Memberships, { userId: user!.id })
  await engine.update(Users, user!.id, { set: { settled: false } })
  const { access_token: token } = (
    await server.call('POST', '/auth/login', {
      body: { email: 'ann@example.org', password: 'correct horse' },
    })
  ).body as { access_token: string }
  assert.equal((await server.call('GET', '/balance', { token })).body, {
    balance: 70,
    held: 0,
    available: 70,
  })
  await server.stop()
})
test("an operator's account is verified, keeps its organisation, and is made once", async () => {
  const mail = memoryMail()
  const { server, accounts } = await served({ mail })
  await server.call('POST', '/auth/register', {
    body: { email: 'ann@example.org', password: "the squatter's" },
  })
  const { org_id, api_key } = await accounts.create({ email: 'Ann@example.org', credits: 5 })
  assert.match(api_key, /^sk_live_/)
  assert.is(
    codeOf(
      await server.call('POST', '/auth/login', {
        body: { email: 'ann@example.org', password: "the squatter's" },
      }),
    ),
    'CREDENTIALS_INVALID',
  )
  const code = /\d{6}/.exec(mail.letters[0]!.text)![0]
  assert.is(
    codeOf(await server.call('POST', '/auth/verify', { body: { email: 'ann@example.org', code } })),
    'CODE_INVALID',
  )
  const { access_token: token } = (await server.call('POST', '/auth/token', { body: { api_key } }))
    .body as { access_token: string }
  assert.is(
    ((await server.call('GET', '/auth/me', { token })).body as { org_id: string }).org_id,
    org_id,
  )
  assert.is(
    await accounts.create({ email: 'ann@example.org', credits: 5 }).then(
      () => 'made',
      error => error.code,
    ),
    'CONFLICT',
  )
  assert.is(
    await accounts.create({ email: 'not an address', credits: 5 }).then(
      () => 'made',
      error => error.code,
    ),
    'INVALID_FIELD',
  )
  await server.stop()
})
test('a profile has a name that can be set and taken away', async () => {
  const { server } = await served()
  const { token } = await server.account()
  for (const name of ['Ann', null]) {
    const { body } = await server.call('PATCH', '/auth/me', { token, body: { name } })
    assert.is((body as { name: string | null }).name, name)
  }
  await server.stop()
})
test('a token of another signer or algorithm, unsigned or altered, is no token', async () => {
  const { server, me } = await served()
  const { token } = await server.account()
  const claims = jwt.decode(token) as jwt.JwtPayload
  const [head, body, signature] = token.split('.') as [string, string, string]
  const rooted = Buffer.from(JSON.stringify({ ...claims, role: 'root' })).toString('base64url')
  const forged = [
    jwt.sign(claims, 'another secret'),
    jwt.sign(claims, null as never, { algorithm: 'none' }),
    jwt.sign(claims, secret, { algorithm: 'HS512' }),
    `${head}.${rooted}.${signature}`,
    `${head}.${body}.`,
    'x',
    `${token} ${token}`,
    jwt.sign({ ...claims, org: '01890000-0000-7000-8000-000000000000' }, secret),
  ]
  for (const bad of forged) assert.is((await me(bad)).status, 401)
  assert.is((await me(token)).status, 200)
  await server.stop()
})
test('a secret is made once, for its owner alone, and a short one is refused', () => {
  const data_dir = fs.mkdtempSync(join(tmpdir(), 'secret-'))
  const clock = manualClock()
  const first = createSigningKey({ config: { data_dir }, clock })
  assert.ok(first.length >= 64)
  assert.is(createSigningKey({ config: { data_dir }, clock }), first)
  assert.is(fs.statSync(join(data_dir, 'auth.secret')).mode & 0o777, 0o600)
  assert.equal(fs.readdirSync(data_dir), ['auth.secret'])
  assert.is(createSigningKey({ config: { data_dir, secret }, clock }), secret)
  fs.writeFileSync(join(data_dir, 'auth.secret'), 'short')
  assert.throws(() => createSigningKey({ config: { data_dir }, clock }), /no secret/)
})
test('a password is kept as salted Argon2id; an unknown user takes as long', async () => {
  const passwords = createPasswords({ clock: manualClock() })
  const [one, two] = [
    await passwords.hash('pässword', 'here'),
    await passwords.hash('pässword', 'here'),
  ]
  assert.match(one, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/)
  assert.is.not(one, two)
  assert.is(
    await passwords.matches('pa\u0308ssword', one, 'here'),
    true,
    'the same characters, composed otherwise',
  )
  assert.is(await passwords.matches('password', one, 'here'), false)
  const timed = async (hash: string | undefined) => {
    const since = performance.now()
    for (let n = 0; n < 8; n++) assert.is(await passwords.matches('wrong', hash, 'here'), false)
    return performance.now() - since
  }
  await timed(one)
  const ratio = (await timed(undefined)) / (await timed(one))
  assert.ok(ratio > 0.4 && ratio < 2.5, String(ratio))
})
test.run()
