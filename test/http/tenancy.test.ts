// Made from the contracts: every identifier of every operation is tried by its owner, by another
// organisation, by a colleague and by nobody.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { orgMemberOf } from '../support/org-member.ts'
import { refsOf, sample, sampleQuery } from '../conformance/plugin/sample.ts'
import { startServer, type Account } from '../conformance/plugin/server.ts'

const server = await startServer({
  env: {
    LIMITS_RUNS_PER_SECOND: '10000',
    LIMITS_RUNS_BURST: '10000',
    LIMITS_TOKEN_PER_MINUTE: '10000',
  },
})
const owner = await server.account()
const stranger = await server.account()
const orgMember = await orgMemberOf(server, owner)

const chat = async () => {
  const { body } = await server.call('POST', '/chat', {
    token: owner.token,
    body: { message: 'mine' },
  })
  const run = body as { run_id: string; session_id: string }
  await (await server.stream(owner.token, run.run_id)).text()
  return run
}
const messageOf = async (sessionId: string) =>
  (
    (await server.call('GET', `/sessions/${sessionId}/messages`, { token: owner.token })).body as {
      items?: { id: string }[]
    }
  ).items?.[0]?.id ?? crypto.randomUUID()
/** Where a message is asked for, the path names a conversation: everybody is given their own. */
const ownSession = async (who: Account | undefined, messageId: string) => {
  const mine = (
    (await server.call('GET', '/sessions?limit=200', { token: owner.token })).body as {
      items: { id: string }[]
    }
  ).items
  for (const { id } of who === owner ? mine : [])
    if (
      (await server.call('GET', `/sessions/${id}/messages`, { token: owner.token })).text.includes(
        messageId,
      )
    )
      return id
  return (
    (
      await server.call('POST', '/chat', {
        token: (who ?? owner).token,
        body: { message: 'theirs' },
      })
    ).body as { session_id: string }
  ).session_id
}
/**
 * A living thing of the owner's, for each kind of identifier. Kinds that no operation can make yet
 * have none, and every id of theirs is unknown.
 */
const fixtures: Record<string, (() => Promise<string>) | 'none yet'> = {
  run: async () => (await chat()).run_id,
  session: async () => (await chat()).session_id,
  'api-key': async () =>
    (
      (await server.call('POST', '/api-keys', { token: owner.token, body: { name: 'one' } }))
        .body as { id: string }
    ).id,
  upload: async () =>
    (
      (
        await server.call('POST', '/uploads', {
          token: owner.token,
          body: { filename: 'mine.txt', mime: 'text/plain', content_base64: btoa('mine') },
        })
      ).body as { upload_id: string }
    ).upload_id,
  artifact: async () =>
    (
      (
        await server.call('POST', '/artifacts', {
          token: owner.token,
          body: { filename: 'mine.md', mime: 'text/markdown', content: 'mine' },
        })
      ).body as { id: string }
    ).id,
  message: async () => messageOf((await chat()).session_id),
  kb: 'none yet',
  workspace: 'none yet',
}

type Try = {
  readonly name: string
  readonly kind: string
  readonly as: (id: string, who: Account | undefined) => Promise<{ status: number; text: string }>
}
const tries: Try[] = server.kernel.host.operations().flatMap(({ key, path, operation }) => {
  const method = key.slice(0, key.indexOf(' '))
  const params = { properties: (operation.params ?? {}) as Record<string, object> }
  const send = async (url: string, who: Account | undefined, body: unknown) => {
    const response = await fetch(server.root + url, {
      method,
      headers: {
        ...(who ? { authorization: `Bearer ${who.token}` } : {}),
        ...(operation.body ? { 'content-type': 'application/json' } : {}),
      },
      ...(operation.body ? { body: JSON.stringify(body) } : {}),
    })
    return { status: response.status, text: await response.text() }
  }
  const fits = () =>
    operation.body ? (sample(operation.body) as Record<string, unknown>) : undefined
  return [
    ...refsOf(params).map(
      ({ field, kind }): Try => ({
        name: `${key} {${field}}`,
        kind,
        as: async (id, who) =>
          send(
            path.replace(`{${field}}`, id),
            who,
            operation.body && refsOf(operation.body).some(one => one.kind === 'message')
              ? { ...fits(), message_id: await messageOf(id) }
              : fits(),
          ),
      }),
    ),
    ...refsOf(operation.body).map(
      ({ field, kind, list }): Try => ({
        name: `${key} body.${field}`,
        kind,
        as: async (id, who) =>
          send(kind === 'message' ? path.replace('{id}', await ownSession(who, id)) : path, who, {
            ...fits(),
            [field]: list ? [id] : id,
          }),
      }),
    ),
  ]
})

test('every path parameter that is an identifier is marked', () => {
  const unmarked = server.kernel.host.operations().flatMap(({ key, operation }) =>
    Object.entries(operation.params ?? {})
      .filter(
        ([, schema]) => (schema as { format?: string }).format === 'uuid' && !('x-ref' in schema),
      )
      .map(([name]) => `${key} ${name}`),
  )
  assert.equal(unmarked, [])
  assert.ok(tries.length >= 12, `identifiers are found (${tries.length})`)
})

for (const { name, kind, as } of tries) {
  test(`${name}: another's is unknown`, async () => {
    const fixture = fixtures[kind]
    assert.ok(fixture, `there is no fixture for ${kind}`)
    const id = fixture === 'none yet' ? crypto.randomUUID() : await fixture!()
    const strange = await as(id, stranger)
    const near = await as(id, orgMember)
    const nobody = await as(id, undefined)
    const absent = await as(crypto.randomUUID(), stranger)
    assert.is(strange.status, 404, `another organisation got ${strange.status} ${strange.text}`)
    assert.is(near.status, 404, `a colleague got ${near.status} ${near.text}`)
    assert.is(nobody.status, 401, `nobody got ${nobody.status}`)
    const plain = (text: string) => text.replace(/"request_id":"[^"]*"/, '')
    assert.is(
      plain(strange.text),
      plain(absent.text),
      'what is not yours looks like what is not there',
    )
    if (fixture === 'none yet') return
    const mine = await as(id, owner)
    // A conflict is found by whoever may know what is there.
    assert.ok(mine.status < 300 || mine.status === 409, `its owner got ${mine.status} ${mine.text}`)
  })
}

test('lists and balances hold nothing of another organisation', async () => {
  await chat()
  const { run_id: runId } = await chat()
  for (const { key, path, operation } of server.kernel.host.operations()) {
    if (
      !key.startsWith('GET ') ||
      operation.params ||
      (operation.auth ?? 'user') !== 'user' ||
      operation.reply === 'sse'
    )
      continue
    const { status, text } = await server.call('GET', path + sampleQuery(operation.query), {
      token: stranger.token,
    })
    assert.is(status, 200, key)
    for (const secret of [owner.org_id, owner.user_id, runId, 'mine'])
      assert.not.match(text, secret, `${key} shows ${secret}`)
  }
})

test.after(() => server.stop())
test.run()
