import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { manualClock } from '#adapters/clock/manual.ts'
import { memoryMail } from '#adapters/mail/memory.ts'
import { startServer, type Answer } from '../../test/conformance/plugin/server.ts'

type Pair = { access_token: string; refresh_token: string; token_type: string; expires_in: number }
const password = 'correct horse battery'

/** A server whose time and letters the test holds. */
async function served(env: Record<string, string> = {}) {
  const clock = manualClock()
  const mail = memoryMail()
  const server = await startServer({
    given: { clock, mail },
    env: { LIMITS_REGISTER_PER_HOUR: '1000', LIMITS_TOKEN_PER_MINUTE: '1000', ...env },
  })
  const post = (path: string, body?: unknown, token?: string): Promise<Answer> =>
    server.call('POST', path, { body, token })
  const codeFor = (email: string): string =>
    /\d{6}/.exec(mail.letters.findLast(({ to }) => to === email)?.text ?? '')?.[0] ?? ''
  const signedUp = async (
    email = `${clock.id()}@example.org`,
  ): Promise<Pair & { email: string }> => {
    assert.is((await post('/auth/register', { email, password })).status, 202)
    const { status, body } = await post('/auth/verify', { email, code: codeFor(email) })
    assert.is(status, 200)
    return { ...(body as Pair), email }
  }
  const me = (token: string) => server.call('GET', '/auth/me', { token })
  return { server, clock, mail, post, codeFor, signedUp, me }
}
const codeOf = ({ body }: Answer): string => (body as { code: string }).code
const on = (
  title: string,
  run: (place: Awaited<ReturnType<typeof served>>) => Promise<void>,
  env?: Record<string, string>,
): void =>
  test(title, async () => {
    const place = await served(env)
    await run(place).finally(() => place.server.stop())
  })
const wrong = (code: string): string => String((Number(code) + 1) % 1_000_000).padStart(6, '0')

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
        post('/auth/verify', { email: 'bob@example.org', code: wrong(code) }),
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
on(
  'after five wrong passwords the account waits, whether it exists or not; a right one ' +
    'clears the count',
  async ({ post, signedUp, clock }) => {
    const { email } = await signedUp()
    for (let n = 0; n < 4; n++) await post('/auth/login', { email, password: 'wrong' })
    assert.is((await post('/auth/login', { email, password })).status, 200)
    for (const who of [email, 'nobody@example.org']) {
      for (let n = 0; n < 5; n++)
        assert.is(
          codeOf(await post('/auth/login', { email: who, password: 'wrong' })),
          'CREDENTIALS_INVALID',
        )
      const throttled = await post('/auth/login', { email: who, password })
      assert.equal([throttled.status, codeOf(throttled)], [429, 'LOGIN_THROTTLED'])
      assert.ok(Number(throttled.headers.get('retry-after')) > 0)
    }
    await clock.leap(60_000)
    assert.is((await post('/auth/login', { email, password })).status, 200)
  },
)
on('many right passwords at the same moment are no guesses', async ({ post, signedUp }) => {
  const { email } = await signedUp()
  const answers = await Promise.all(
    Array.from({ length: 12 }, () => post('/auth/login', { email, password })),
  )
  assert.ok(answers.every(({ status }) => status === 200))
})
on(
  'a refresh token works once, again within ten seconds, and later ends the whole sign-in',
  async ({ post, signedUp, clock }) => {
    const { refresh_token: first } = await signedUp()
    const race = await Promise.all(
      Array.from({ length: 4 }, () => post('/auth/refresh', { refresh_token: first })),
    )
    assert.ok(race.every(({ status }) => status === 200))
    const tokens = race.map(({ body }) => (body as Pair).refresh_token)
    assert.is(new Set(tokens).size, 4)
    await clock.leap(10_001)
    assert.is((await post('/auth/refresh', { refresh_token: tokens[0] })).status, 200)
    assert.is(codeOf(await post('/auth/refresh', { refresh_token: first })), 'REFRESH_INVALID')
    assert.is(codeOf(await post('/auth/refresh', { refresh_token: tokens[1] })), 'REFRESH_INVALID')
    assert.is(codeOf(await post('/auth/refresh', { refresh_token: 'unknown' })), 'REFRESH_INVALID')
  },
)
on(
  'a refresh token lives for thirty days, an access token for fifteen minutes',
  async ({ post, signedUp, clock, me }) => {
    const { refresh_token, access_token } = await signedUp()
    await clock.leap(899_000)
    assert.is((await me(access_token)).status, 200)
    await clock.leap(1_000)
    assert.is((await me(access_token)).status, 401)
    await clock.leap(30 * 24 * 3_600_000 - 900_001)
    const next = (await post('/auth/refresh', { refresh_token })).body as Pair
    assert.is((await me(next.access_token)).status, 200)
    await clock.leap(29 * 24 * 3_600_000)
    const last = (await post('/auth/refresh', { refresh_token: next.refresh_token })).body as Pair
    await clock.leap(30 * 24 * 3_600_000)
    assert.is(
      codeOf(await post('/auth/refresh', { refresh_token: last.refresh_token })),
      'REFRESH_INVALID',
    )
  },
)
on('signing out ends that sign-in and no other', async ({ post, signedUp, server }) => {
  const here = await signedUp()
  const there = (await post('/auth/login', { email: here.email, password })).body as Pair
  assert.is((await server.call('POST', '/auth/logout', { token: here.access_token })).status, 204)
  assert.is(
    codeOf(await post('/auth/refresh', { refresh_token: here.refresh_token })),
    'REFRESH_INVALID',
  )
  const stranger = await signedUp()
  await post('/auth/logout', { refresh_token: there.refresh_token }, stranger.access_token)
  assert.is((await post('/auth/refresh', { refresh_token: there.refresh_token })).status, 200)
})
on(
  'a new password ends every other sign-in and every API key',
  async ({ post, signedUp, me, server }) => {
    const here = await signedUp()
    const there = (await post('/auth/login', { email: here.email, password })).body as Pair
    const key = (await post('/api-keys', { name: 'ci' }, here.access_token)).body as {
      secret: string
    }
    const refused = await post(
      '/auth/change-password',
      { current_password: 'wrong', new_password: 'another password' },
      here.access_token,
    )
    assert.equal([refused.status, codeOf(refused)], [403, 'PASSWORD_WRONG'])
    assert.is(
      (await post('/auth/change-password', { new_password: 'another password' }, here.access_token))
        .status,
      400,
    )
    const changed = await post(
      '/auth/change-password',
      { current_password: password, new_password: 'another password' },
      here.access_token,
    )
    assert.is((await me((changed.body as Pair).access_token)).status, 200)
    for (const token of [here.access_token, there.access_token])
      assert.is((await me(token)).status, 401)
    for (const { refresh_token } of [here, there])
      assert.is(codeOf(await post('/auth/refresh', { refresh_token })), 'REFRESH_INVALID')
    assert.is(codeOf(await post('/auth/token', { api_key: key.secret })), 'KEY_INVALID')
    assert.equal(
      (await server.call('GET', '/api-keys', { token: (changed.body as Pair).access_token })).body,
      { items: [] },
    )
    assert.is(
      (await post('/auth/login', { email: here.email, password: 'another password' })).status,
      200,
    )
  },
)
on('a profile has a name that can be set and taken away', async ({ signedUp, server }) => {
  const { access_token: token } = await signedUp()
  assert.is(
    (
      (await server.call('PATCH', '/auth/me', { token, body: { name: 'Ann' } })).body as {
        name: string
      }
    ).name,
    'Ann',
  )
  assert.is(
    (
      (await server.call('PATCH', '/auth/me', { token, body: { name: null } })).body as {
        name: null
      }
    ).name,
    null,
  )
})
test.run()
