import { createHash } from 'node:crypto'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { StorageEngine } from '#ports/storage.ts'
import { codeOf, startIdentity, testsOn } from '../../../test/support/identity-kit.ts'
import { Keys, Users, type Key } from '../collections.ts'

type Created = {
  id: string
  name: string
  prefix: string
  secret: string
  last_used_at: string | null
}

async function served(env?: Readonly<Record<string, string>>) {
  const { server, clock } = await startIdentity(env)
  const { token, user_id } = await server.account()
  const create = (name: string) => server.call('POST', '/api-keys', { token, body: { name } })
  const list = async () =>
    ((await server.call('GET', '/api-keys', { token })).body as { items: Created[] }).items
  const exchange = (api_key: string) => server.call('POST', '/auth/token', { body: { api_key } })
  return { server, clock, token, user_id, create, list, exchange }
}
const on = testsOn(served)

on('a key is shown once and kept as its hash', async ({ server, create, list, user_id }) => {
  const made = await create('ci')
  const { secret, prefix, id } = made.body as Created
  assert.is(made.status, 201)
  assert.match(secret, /^sk_live_[A-Za-z0-9_-]{43}$/)
  assert.ok(secret.startsWith(prefix) && prefix.length < 20)
  assert.ok(
    (await list()).every(key => !('secret' in key) && !JSON.stringify(key).includes(secret)),
  )
  const { items } = await server
    .engine<StorageEngine>('storage')
    .find(Keys, { where: { userId: user_id } })
  const kept = items.find((key: Key) => key.id === id)!
  assert.is(kept.hash, createHash('sha256').update(secret).digest('hex'))
  assert.not.ok(JSON.stringify(kept).includes(secret))
})
on(
  'a key is exchanged by header, by bearer and by body, and is no access token itself',
  async ({ server, create }) => {
    const { secret } = (await create('ci')).body as Created
    const ways = [
      { headers: { 'x-api-key': secret } },
      { token: secret },
      { body: { api_key: secret } },
    ]
    for (const way of ways) {
      const { status, body } = await server.call('POST', '/auth/token', way)
      const { access_token, ...rest } = body as { access_token: string }
      assert.equal([status, rest], [200, { token_type: 'Bearer', expires_in: 900 }])
      assert.is((await server.call('GET', '/auth/me', { token: access_token })).status, 200)
    }
    assert.is((await server.call('GET', '/auth/me', { token: secret })).status, 401)
    for (const bad of [
      {},
      { headers: { 'x-api-key': 'sk_live_short' } },
      { token: `sk_live_${'x'.repeat(43)}` },
      { body: { api_key: secret.toLowerCase() } },
      { body: {} },
      { headers: { 'x-api-key': 'wrong' }, body: { api_key: 'wrong' } },
    ])
      assert.equal(
        await server
          .call('POST', '/auth/token', bad)
          .then(answer => [answer.status, codeOf(answer)]),
        [401, 'KEY_INVALID'],
      )
  },
)
on('of the places of a key, the first that holds one counts', async ({ server, create }) => {
  const { secret } = (await create('ci')).body as { secret: string }
  const gateway = { authorization: 'Basic Z2F0ZXdheTp3b3Jk', 'x-api-key': 'of the gateway' }
  for (const beside of [
    { headers: gateway, body: { api_key: secret } },
    { headers: { ...gateway, authorization: `Bearer ${secret}` } },
    { token: 'eyJ.of.another', body: { api_key: secret } },
  ])
    assert.is((await server.call('POST', '/auth/token', beside)).status, 200)
  const first = { headers: { 'x-api-key': `sk_live_${'x'.repeat(43)}` }, body: { api_key: secret } }
  assert.is((await server.call('POST', '/auth/token', first)).status, 401)
})
on(
  'of many keys made at once, twenty are active; a revoked one makes room',
  async ({ server, create, list, token }) => {
    const made = await Promise.all(Array.from({ length: 30 }, (_, n) => create(`key ${n}`)))
    assert.is(made.filter(({ status }) => status === 201).length, 19, 'one came with the account')
    assert.ok(
      made
        .filter(({ status }) => status !== 201)
        .every(answer => answer.status === 409 && codeOf(answer) === 'KEYS_EXHAUSTED'),
    )
    const keys = await list()
    assert.is(keys.length, 20)
    assert.is((await server.call('DELETE', `/api-keys/${keys[3]!.id}`, { token })).status, 204)
    assert.is((await create('again')).status, 201)
    assert.is((await create('one more')).status, 409)
  },
)
on(
  'a revoked key is exchanged no more; tokens already issued live on; revoking again finds nothing',
  async ({ server, create, exchange, list, token }) => {
    const { secret, id } = (await create('ci')).body as Created
    const { access_token } = (await exchange(secret)).body as { access_token: string }
    assert.is((await server.call('DELETE', `/api-keys/${id}`, { token })).status, 204)
    assert.is(codeOf(await exchange(secret)), 'KEY_INVALID')
    assert.is((await server.call('GET', '/auth/me', { token: access_token })).status, 200)
    assert.is((await server.call('DELETE', `/api-keys/${id}`, { token })).status, 404)
    assert.ok((await list()).every(key => key.id !== id))
  },
)
on(
  'a key of an earlier token version is dead and holds no slot, even if the raising broke ' +
    'off half way',
  async ({ server, create, exchange, user_id }) => {
    const { secret } = (await create('ci')).body as Created
    for (let n = 0; n < 18; n++) await create(`key ${n}`)
    await server.engine<StorageEngine>('storage').update(Users, user_id, { inc: { version: 1 } })
    assert.is(codeOf(await exchange(secret)), 'KEY_INVALID')
    // The state remembered for ten seconds still takes the old access token: the one way left to
    // ask.
    assert.is((await create('after')).status, 201)
  },
)
on("nobody sees or revokes another's key", async ({ server, create }) => {
  const { id, secret } = (await create('mine')).body as Created
  const stranger = await server.account()
  assert.is((await server.call('DELETE', `/api-keys/${id}`, { token: stranger.token })).status, 404)
  assert.not.ok(
    (await server.call('GET', '/api-keys', { token: stranger.token })).text.includes(id),
  )
  assert.is((await server.call('POST', '/auth/token', { body: { api_key: secret } })).status, 200)
})
on('the last use is written at most once a minute', async ({ create, exchange, list, clock }) => {
  const { secret, id } = (await create('ci')).body as Created
  const used = async () => (await list()).find(key => key.id === id)!.last_used_at
  assert.is(await used(), null)
  await exchange(secret)
  const first = await used()
  assert.is(first, new Date(clock.now()).toISOString())
  await clock.leap(59_999)
  await exchange(secret)
  assert.is(await used(), first)
  await clock.leap(1)
  await exchange(secret)
  assert.is(await used(), new Date(clock.now()).toISOString())
})
on(
  'exchanges are limited by address, and the answer says how long to wait',
  async ({ exchange, clock }) => {
    const statuses: number[] = []
    for (let n = 0; n < 60; n++) statuses.push((await exchange('wrong')).status)
    assert.equal(
      [statuses.filter(status => status === 401).length, statuses.at(-1)],
      [59, 429],
      'the account itself took one',
    )
    const refused = await exchange('wrong')
    assert.ok(Number(refused.headers.get('retry-after')) > 0)
    await clock.leap(60_000)
    assert.is((await exchange('wrong')).status, 401)
  },
  { LIMITS_TOKEN_PER_MINUTE: '60' },
)
on('a list of keys goes by pages', async ({ server, create, token }) => {
  for (let n = 0; n < 4; n++) await create(`key ${n}`)
  const seen: string[] = []
  let cursor: string | undefined
  do {
    const { items, next_cursor } = (
      await server.call(
        'GET',
        `/api-keys?limit=2${cursor === undefined ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
        { token },
      )
    ).body as { items: Created[]; next_cursor?: string }
    seen.push(...items.map(({ id }) => id))
    cursor = next_cursor
  } while (cursor !== undefined)
  assert.equal([seen.length, new Set(seen).size], [5, 5])
})
test.run()
