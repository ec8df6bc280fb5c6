// From a registration to an account: codes, passwords, letters and their bounds.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  codeOf,
  onIdentity as on,
  password,
  wrongCode,
  type Pair,
} from '../../../test/support/identity-kit.ts'

on(
  'a registered address proves itself by its code and is signed in to an organisation of its own',
  async ({ post, codeFor, me, server, mail }) => {
    const answer = await post('/auth/register', { email: ' Ann@Example.ORG ', password })
    assert.is(answer.status, 202)
    assert.equal(answer.body, { email: 'ann@example.org', expires_in: 900 })
    assert.equal(
      mail.letters.map(({ to }) => to),
      ['ann@example.org'],
    )
    assert.is(
      codeOf(await post('/auth/login', { email: 'ann@example.org', password })),
      'EMAIL_UNVERIFIED',
    )
    const verified = await post('/auth/verify', {
      email: 'ANN@example.org',
      code: codeFor('ann@example.org'),
    })
    const pair = verified.body as Pair
    assert.is(pair.token_type, 'Bearer')
    assert.is(pair.expires_in, 900)
    const { body: profile } = await me(pair.access_token)
    assert.is((profile as { email: string }).email, 'ann@example.org')
    assert.is((profile as { role: string }).role, 'owner')
    assert.equal((await server.call('GET', '/balance', { token: pair.access_token })).body, {
      balance: 100,
      held: 0,
      available: 100,
    })
    const claims = JSON.parse(
      Buffer.from(pair.access_token.split('.')[1]!, 'base64url').toString(),
    ) as Record<string, unknown>
    assert.is(claims['sub'], (profile as { user_id: string }).user_id)
    assert.is(claims['org'], (profile as { org_id: string }).org_id)
    assert.equal(
      [
        claims['role'],
        claims['ver'],
        Number(claims['exp']) - Number(claims['iat']),
        typeof claims['jti'],
      ],
      ['owner', 1, 900, 'string'],
    )
    assert.is(
      codeOf(
        await post('/auth/verify', { email: 'ann@example.org', code: codeFor('ann@example.org') }),
      ),
      'CODE_INVALID',
    )
  },
)
on(
  'a code has five tries of a network, also when all are made at once, and fifteen minutes',
  async ({ post, codeFor, clock }) => {
    await post('/auth/register', { email: 'bob@example.org', password })
    const code = codeFor('bob@example.org')
    const tries = await Promise.all(
      Array.from({ length: 8 }, () =>
        post('/auth/verify', { email: 'bob@example.org', code: wrongCode(code) }),
      ),
    )
    assert.equal(tries.map(({ status }) => status).sort(), [400, 400, 400, 400, 400, 429, 429, 429])
    assert.is((await post('/auth/verify', { email: 'bob@example.org', code })).status, 429)
    await clock.leap(15 * 60_000)
    assert.is(
      codeOf(await post('/auth/verify', { email: 'bob@example.org', code })),
      'CODE_INVALID',
    )
  },
)
on('a registered address and an unknown one count wrong codes alike', async ({ post }) => {
  await post('/auth/register', { email: 'bob@example.org', password })
  const answers = async (email: string) => {
    const codes = []
    for (let n = 0; n < 7; n++)
      codes.push(codeOf(await post('/auth/verify', { email, code: '000000' })))
    return codes
  }
  assert.equal(await answers('bob@example.org'), await answers('nobody@example.org'))
})
on(
  'of two registrations with different passwords none counts: whoever has the code sets one',
  async ({ post, codeFor, server }) => {
    await post('/auth/register', { email: 'bob@example.org', password })
    const first = codeFor('bob@example.org')
    await post('/auth/register', { email: 'bob@example.org', password: "the stranger's words" })
    assert.is(codeFor('bob@example.org'), first, 'the letter before is as good as the last one')
    const { status, body } = await post('/auth/verify', { email: 'bob@example.org', code: first })
    assert.equal([status, (body as { has_password: boolean }).has_password], [200, false])
    for (const word of [password, "the stranger's words"])
      assert.is(
        codeOf(await post('/auth/login', { email: 'bob@example.org', password: word })),
        'CREDENTIALS_INVALID',
      )
    const token = (body as Pair).access_token
    assert.is(
      ((await server.call('GET', '/auth/me', { token })).body as { has_password: boolean })
        .has_password,
      false,
    )
    assert.is((await post('/auth/change-password', { new_password: password }, token)).status, 200)
    assert.is((await post('/auth/login', { email: 'bob@example.org', password })).status, 200)
  },
)
on(
  'the code and a password together open the account with that password',
  async ({ post, codeFor }) => {
    for (const word of ["the stranger's words", password])
      await post('/auth/register', { email: 'bob@example.org', password: word })
    const verified = await post('/auth/verify', {
      email: 'bob@example.org',
      code: codeFor('bob@example.org'),
      password: 'a third password',
    })
    assert.is((verified.body as { has_password: boolean }).has_password, true)
    assert.is(
      (await post('/auth/login', { email: 'bob@example.org', password: 'a third password' }))
        .status,
      200,
    )
  },
)
on(
  'registering twice with the same password keeps it, also at the same moment',
  async ({ post, codeFor }) => {
    await Promise.all(
      [1, 2, 3].map(() => post('/auth/register', { email: 'bob@example.org', password })),
    )
    await post('/auth/register', { email: 'bob@example.org', password })
    assert.is(
      (await post('/auth/verify', { email: 'bob@example.org', code: codeFor('bob@example.org') }))
        .status,
      200,
    )
    assert.is((await post('/auth/login', { email: 'bob@example.org', password })).status, 200)
  },
)
on(
  'a code is named for an hour at most, then there is another',
  async ({ post, codeFor, clock }) => {
    const codes = new Set<string>()
    for (let minutes = 0; minutes < 90; minutes += 15) {
      await post('/auth/register', { email: 'bob@example.org', password })
      codes.add(codeFor('bob@example.org'))
      await clock.leap(15 * 60_000)
    }
    assert.is(codes.size, 2)
  },
)
on(
  'an address that has an account answers as any other; its owner is told by letter and ' +
    'nothing changes',
  async ({ post, signedUp, mail }) => {
    const { email } = await signedUp()
    const taken = await post('/auth/register', { email, password: 'another password' })
    const free = await post('/auth/register', { email: 'new@example.org', password })
    assert.equal(
      [taken.status, Object.keys(taken.body as object)],
      [free.status, Object.keys(free.body as object)],
    )
    const letter = mail.letters.findLast(({ to }) => to === email)!
    assert.match(letter.subject, 'Somebody tried to register')
    assert.not.match(letter.text, /\d{6}/)
    assert.is((await post('/auth/login', { email, password })).status, 200)
  },
)
on(
  'registrations are capped by address per hour',
  async ({ post, clock }) => {
    const statuses: number[] = []
    for (let n = 0; n < 4; n++)
      statuses.push((await post('/auth/register', { email: `u${n}@example.org`, password })).status)
    assert.equal(statuses, [202, 202, 202, 429])
    await clock.leap(3_600_000)
    assert.is((await post('/auth/register', { email: 'u4@example.org', password })).status, 202)
  },
  { LIMITS_REGISTER_PER_HOUR: '3' },
)
on(
  'nobody is flooded with letters, whether or not they have an account',
  async ({ post, signedUp, mail, clock }) => {
    const { email } = await signedUp()
    for (const to of [email, 'new@example.org']) {
      const statuses: number[] = []
      for (let n = 0; n < 7; n++)
        statuses.push((await post('/auth/register', { email: to, password })).status)
      assert.is(statuses.at(-1), 429)
      assert.is(mail.letters.filter(letter => letter.to === to).length, 5)
    }
    await clock.leap(3_600_000)
    assert.is((await post('/auth/register', { email: 'new@example.org', password })).status, 202)
  },
)
on(
  "a malformed address, a short and an endless password are refused by the field's name",
  async ({ post, mail }) => {
    for (const email of [
      'ann',
      'a@b',
      'a b@c.example',
      'a@b.example\r\nBcc: c@d.example',
      'a@b.example, c@d.example',
      `${'a'.repeat(300)}@b.example`,
    ])
      assert.match((await post('/auth/register', { email, password })).text, /"detail":"email/)
    for (const bad of ['short', 'x'.repeat(257)])
      assert.match(
        (await post('/auth/register', { email: 'a@b.example', password: bad })).text,
        /"detail":"password/,
      )
    assert.is(
      (await post('/auth/register', { email: 'a@b.example', password: '🔒'.repeat(256) })).status,
      202,
    )
    assert.is(mail.letters.length, 1)
  },
)
test.run()
