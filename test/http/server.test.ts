// What is ours in the HTTP server: errors, CORS, HEAD, limits, ids, streams, the documents.
import { connect } from 'node:net'
import { EventSource } from 'eventsource'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { loadPlugins } from '../../kernel/loading/sources.ts'
import { manualClock } from '../../adapters/clock/manual.ts'
import { startServer } from '../conformance/plugin/server.ts'

const server = await startServer({
  env: {
    CORS_ORIGINS: 'https://app.example.org',
    LIMITS_RUNS_PER_SECOND: '5',
    LIMITS_RUNS_BURST: '10',
    TRUST_PROXY: '1',
    MODELS_URL: 'scripted:?tokens=5&interval_ms=0',
  },
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

test('a burst of ten passes, the eleventh waits as long as it is told', async () => {
  const clock = manualClock()
  const env = { LIMITS_RUNS_PER_SECOND: '1', LIMITS_RUNS_BURST: '10' }
  const still = await startServer({ env, given: { clock } })
  const { token } = await still.account()
  const other = await still.account()
  const answers = await Promise.all(
    Array.from({ length: 14 }, () =>
      still.call('POST', '/chat', { token, body: { message: 'x' } }),
    ),
  )
  const refused = answers.filter(({ status }) => status === 429)
  assert.is(answers.filter(({ status }) => status === 200).length, 10)
  assert.is(refused.length, 4)
  for (const { headers, body } of refused) {
    assert.is(headers.get('retry-after'), '1')
    assert.match((body as { detail: string }).detail, /Too many requests \(runs\)/)
  }
  assert.is(
    (await still.call('POST', '/chat', { token: other.token, body: { message: 'x' } })).status,
    200,
    'another user is not held up',
  )
  await clock.advance(1000)
  assert.is((await still.call('POST', '/chat', { token, body: { message: 'x' } })).status, 200)
  await still.stop()
})

test('a message is bounded in bytes, not in characters', async () => {
  const small = await startServer({ env: { RUNS_MESSAGE_BYTES_MAX: '1000' } })
  const { token } = await small.account()
  const say = async (message: string) =>
    await small.call('POST', '/chat', { token, body: { message } })
  assert.equal(
    [(await say('x'.repeat(1000))).status, (await say('€'.repeat(333))).status],
    [200, 200],
  )
  for (const message of ['x'.repeat(1001), '€'.repeat(334)])
    assert.match((await say(message)).text, /message: is longer than 1000 bytes/)
  await small.stop()
})

test('null for an optional field, and an id in capitals, mean what they seem to mean', async () => {
  const { token } = await server.account()
  const nothing = Object.fromEntries(
    [
      'app_name',
      'session_id',
      'attachments',
      'kb_ids',
      'kb_enhance',
      'plan',
      'model',
      'reasoning',
      'data_workspace_id',
      'client_tz',
      'idempotency_key',
    ].map(name => [name, null]),
  )
  const started = await server.call('POST', '/chat', { token, body: { message: 'x', ...nothing } })
  assert.is(started.status, 200, started.text)
  const { run_id: run, session_id: session } = started.body as {
    run_id: string
    session_id: string
  }
  assert.is((await server.call('POST', '/chat', { token, body: { message: null } })).status, 400)
  await (await server.stream(token, run.toUpperCase())).text()
  assert.is((await server.call('GET', `/sessions/${session.toUpperCase()}`, { token })).status, 200)
  const again = await server.call('POST', '/chat', {
    token,
    body: { message: 'x', session_id: session.toUpperCase() },
  })
  assert.is((again.body as { session_id: string }).session_id, session)
  const { paths } = (await server.call('GET', '/openapi.json')).body as {
    paths: Record<
      string,
      Record<
        string,
        {
          requestBody: {
            content: Record<string, { schema: { properties: Record<string, { type: unknown }> } }>
          }
        }
      >
    >
  }
  const { properties } =
    paths['/api/v1/chat']!['post']!.requestBody.content['application/json']!.schema
  assert.equal(
    ['message', 'session_id', 'plan', 'attachments'].map(name => properties[name]!.type),
    ['string', ['string', 'null'], ['boolean', 'null'], ['array', 'null']],
  )
})

test('a stream ends at once for a cursor at the end, and Last-Event-ID beats ?after', async () => {
  const { token } = await server.account()
  const { run_id: runId } = (await server.call('POST', '/chat', { token, body: { message: 'x' } }))
    .body as { run_id: string }
  const whole = await (await server.stream(token, runId)).text()
  const ids = [...whole.matchAll(/^id: (\d+)$/gm)].map(([, id]) => id!)
  const atEnd = await server.stream(token, runId, { 'last-event-id': ids.at(-1)! })
  assert.is(atEnd.status, 204, 'so that an EventSource does not come back')
  assert.is(await atEnd.text(), '')
  const both = await (
    await server.stream(token, runId, { 'last-event-id': ids[2]! }, `?after=${ids[0]}`)
  ).text()
  assert.equal(
    [...both.matchAll(/^id: (\d+)$/gm)].map(([, id]) => id),
    ids.slice(3),
  )
  const query = await (await server.stream(token, runId, {}, `?after=${ids[1]}`)).text()
  assert.equal(
    [...query.matchAll(/^id: (\d+)$/gm)].map(([, id]) => id),
    ids.slice(2),
  )
})

test('an EventSource reads a run to its end, asks once more, and stays away', async () => {
  const { token } = await server.account()
  const { run_id: run } = (await server.call('POST', '/chat', { token, body: { message: 'x' } }))
    .body as { run_id: string }
  const statuses: number[] = []
  const source = new EventSource(`${server.base}/runs/${run}/events`, {
    fetch: async (url, init) => {
      const response = await fetch(url, {
        ...init,
        headers: { ...init.headers, authorization: `Bearer ${token}` },
      })
      statuses.push(response.status)
      return response
    },
  })
  await new Promise<void>(closed =>
    source.addEventListener('error', () => {
      if (source.readyState === source.CLOSED) closed()
    }),
  )
  assert.equal(statuses, [200, 204])
})

test('a stream is neither cached nor buffered, and says when to come back', async () => {
  const { token } = await server.account()
  const { run_id: runId } = (await server.call('POST', '/chat', { token, body: { message: 'x' } }))
    .body as { run_id: string }
  const stream = await server.stream(token, runId)
  assert.is(stream.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  assert.is(stream.headers.get('cache-control'), 'private, no-store')
  assert.is(stream.headers.get('x-accel-buffering'), 'no')
  assert.match(await stream.text(), /^retry: \d+$/m)
})

test('a client that goes away leaves no stream behind', async () => {
  const { token } = await server.account()
  const { run_id: runId } = (
    await server.call('POST', '/chat', { token, body: { message: '[[stall_after=1]]' } })
  ).body as { run_id: string }
  const abort = new AbortController()
  const stream = await fetch(`${server.base}/runs/${runId}/events`, {
    headers: { authorization: `Bearer ${token}` },
    signal: abort.signal,
  })
  await stream.body!.getReader().read()
  assert.match((await server.call('GET', '/metrics')).text, /http_open_streams 1/)
  abort.abort()
  await pause(100)
  assert.match((await server.call('GET', '/metrics')).text, /http_open_streams 0/)
  await server.call('POST', `/runs/${runId}/cancel`, { token })
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

test('the OpenAPI document names every operation with each of its statuses', async () => {
  const { body } = await server.call('GET', '/openapi.json')
  const { openapi, paths } = body as {
    openapi: string
    paths: Record<string, Record<string, { responses: object; summary: string }>>
  }
  assert.is(openapi, '3.1.0')
  for (const { key, path } of server.kernel.host.operations()) {
    const verb = key.slice(0, key.indexOf(' ')).toLowerCase()
    assert.ok(paths[path]?.[verb]?.summary, key)
    assert.ok('500' in paths[path]![verb]!.responses, key)
  }
  const chat = Object.keys(paths['/api/v1/chat']!['post']!.responses)
  for (const status of [
    '200',
    '400',
    '401',
    '402',
    '403',
    '404',
    '409',
    '413',
    '415',
    '429',
    '500',
    '503',
  ])
    assert.ok(chat.includes(status), status)
})

test('the page to read loads nothing from anywhere', async () => {
  const { status, text, headers } = await server.call('GET', '/docs')
  assert.is(status, 200)
  assert.match(headers.get('content-type') ?? '', /text\/html/)
  assert.match(text, /Start a durable run/)
  assert.not.match(text, /<script|src=|https?:\/\/(?!localhost)|@import|url\(/)
})

test('documents are made once for a set of plugins; a client that has them gets 304', async () => {
  const plain = await startServer({
    plugins: (await loadPlugins()).filter(({ name }) => ['docs', 'ops'].includes(name)),
    env: { METRICS_TOKEN: 'a-token-for-the-metrics' },
  })
  for (const path of ['/openapi.json', '/docs']) {
    const first = await server.call('GET', path)
    const etag = first.headers.get('etag')!
    assert.match(etag, /^"[\w-]{22}"$/)
    assert.is(first.headers.get('cache-control'), 'public, no-cache')
    for (const tags of [etag, `W/${etag}`, `"x", ${etag}`, '*']) {
      const again = await server.call('GET', path, { headers: { 'if-none-match': tags } })
      assert.equal([again.status, again.text, again.headers.get('etag')], [304, '', etag], tags)
    }
    assert.is((await server.call('GET', path, { headers: { 'if-none-match': '"x"' } })).status, 200)
    assert.is.not(
      (await plain.call('GET', path)).headers.get('etag'),
      etag,
      'another set of plugins, another document',
    )
  }
  assert.match(
    (await server.call('GET', '/docs')).headers.get('content-security-policy') ?? '',
    /default-src 'none'; style-src 'unsafe-inline';.*frame-ancestors 'none'/,
  )
  assert.is((await plain.call('GET', '/metrics')).status, 401)
  assert.is((await plain.call('GET', '/metrics', { token: 'a-token-for-the-metrics' })).status, 200)
  await plain.stop()
})

test('metrics count by route template, never by id', async () => {
  const { text } = await server.call('GET', '/metrics')
  assert.match(
    text,
    /http_requests_total\{method="POST",route="\/api\/v1\/chat",status="200"\} \d+/,
  )
  assert.not.match(text, /[0-9a-f]{8}-[0-9a-f]{4}-/)
})

test.after(() => server.stop())
test.run()
