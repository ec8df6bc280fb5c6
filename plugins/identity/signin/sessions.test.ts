// How long a sign-in lives, and what ends it.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  codeOf,
  onIdentity as on,
  password,
  type Pair,
} from '../../../test/support/identity-kit.ts'

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
test.run()
