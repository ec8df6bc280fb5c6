// What is ours in the HTTP server: errors, ids, queries, CORS, HEAD, broken requests, readiness.
import { connect } from 'node:net'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { startServer } from '../conformance/plugin/server.ts'

const server = await startServer({
  env: { CORS_ORIGINS: 'https://app.example.org', TRUST_PROXY: '1' },
})
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

test('unknown paths and methods are refused in our words', async () => {
  const unknown = await server.call('GET', '/nowhere')
  assert.is(unknown.status, 404)
  assert.equal(Object.keys(unknown.body as object), ['detail', 'code', 'request_id'])
  const method = await server.call('PUT', '/chat', { body: {} })
  assert.is(method.status, 405)
  assert.match((method.body as { detail: string }).detail, /PUT is not offered at \/api\/v1\/chat/)
  assert.match(method.headers.get('allow') ?? '', /POST/)
})

test("every answer carries a request id, the client's own where it is a sane one", async () => {
  assert.match(
    (await server.call('GET', '/healthz')).headers.get('x-request-id') ?? '',
    /^[0-9a-f-]{36}$/,
  )
  assert.is(
    (await server.call('GET', '/healthz', { headers: { 'x-request-id': 'abc-1' } })).headers.get(
      'x-request-id',
    ),
    'abc-1',
  )
  assert.is.not(
    (
      await server.call('GET', '/healthz', { headers: { 'x-request-id': 'a b<script>' } })
    ).headers.get('x-request-id'),
    'a b<script>',
  )
  const refused = await server.call('GET', '/balance')
  assert.is(
    (refused.body as { request_id: string }).request_id,
    refused.headers.get('x-request-id'),
  )
})

test('a path between parameters and literals is 405 with what is offered', async () => {
  const { token } = await server.account()
  for (const method of ['PATCH', 'DELETE']) {
    const { status, headers, body } = await server.call(method, '/sessions/search', {
      token,
      ...(method === 'PATCH' ? { body: { title: 'x' } } : {}),
    })
    assert.equal(
      [status, headers.get('allow'), (body as { code: string }).code],
      [405, 'GET', 'METHOD_NOT_ALLOWED'],
    )
  }
  assert.equal(
    (await server.call('PUT', `/sessions/${crypto.randomUUID()}`)).headers
      .get('allow')
      ?.split(', ')
      .sort(),
    ['DELETE', 'GET', 'PATCH'],
  )
})

test('a question mark within a query belongs to it', async () => {
  const { token } = await server.account()
  assert.is((await server.call('GET', '/sessions/search?q=why?', { token })).status, 200)
  for (const query of ['q=why?&nonsense=1', 'q=why?&limit=0'])
    assert.is((await server.call('GET', `/sessions/search?${query}`, { token })).status, 400)
})

test('a name like those of every object is as unknown in a query as any other', async () => {
  const { token } = await server.account()
  for (const name of ['__proto__', 'constructor', 'toString'])
    assert.is((await server.call('GET', `/sessions?${name}=1`, { token })).status, 400, name)
})

test('nothing is kept by anybody on its way, and nothing of it runs or is framed', async () => {
  const { token } = await server.account()
  for (const { headers } of [
    await server.call('GET', '/auth/me', { token }),
    await server.call('GET', '/nowhere'),
    await server.call('POST', '/chat'),
  ]) {
    assert.is(headers.get('cache-control'), 'private, no-store')
    assert.equal(
      ['x-content-type-options', 'x-frame-options', 'referrer-policy'].map(name =>
        headers.get(name),
      ),
      ['nosniff', 'DENY', 'no-referrer'],
    )
    assert.match(
      headers.get('content-security-policy') ?? '',
      /default-src 'none'.*frame-ancestors 'none'/,
    )
    assert.is(headers.get('strict-transport-security'), null, 'only TLS may say so')
  }
})

test('HEAD is GET without its body', async () => {
  const response = await fetch(`${server.base}/healthz`, { method: 'HEAD' })
  assert.is(response.status, 200)
  assert.is(await response.text(), '')
  assert.ok(Number(response.headers.get('content-length')) > 0)
})

test('a preflight names the origin that may call, and no other', async () => {
  const preflight = (origin: string) =>
    fetch(`${server.base}/chat`, {
      method: 'OPTIONS',
      headers: { origin, 'access-control-request-method': 'POST' },
    })
  const ours = await preflight('https://app.example.org')
  const theirs = await preflight('https://evil.example.org')
  assert.is(ours.status, 204)
  assert.is(ours.headers.get('access-control-allow-origin'), 'https://app.example.org')
  assert.match(ours.headers.get('access-control-allow-headers') ?? '', /Last-Event-ID/)
  assert.is(theirs.headers.get('access-control-allow-origin'), null)
  const plain = await fetch(`${server.base}/healthz`, {
    headers: { origin: 'https://app.example.org' },
  })
  assert.is(plain.headers.get('access-control-allow-origin'), 'https://app.example.org')
})

test('a body that never ends is not waited for, and a broken request kills nobody', async () => {
  const socket = connect(Number(new URL(server.root).port), '127.0.0.1')
  socket.write(
    'POST /api/v1/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: ' +
      'application/json\r\nContent-Length: 1000\r\n\r\n{"email":',
  )
  await pause(50)
  socket.destroy()
  const garbage = connect(Number(new URL(server.root).port), '127.0.0.1')
  garbage.write('\u0001\u0002\u0003 nonsense\r\n\r\n')
  await pause(50)
  garbage.destroy()
  assert.is((await server.call('GET', '/healthz')).status, 200)
})

test('ready says what cannot serve', async () => {
  const { status, body } = await server.call('GET', '/readyz')
  assert.is(status, 200)
  assert.ok(
    (body as { checks: { name: string; ok: boolean }[] }).checks.some(
      ({ name, ok }) => name === 'port:storage' && ok,
    ),
  )
})

test.after(() => server.stop())
test.run()
