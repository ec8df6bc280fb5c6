// The documents that describe the API: each once for a set of plugins, with a tag.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { loadPlugins } from '../../kernel/loading/sources.ts'
import { startServer } from '../conformance/plugin/server.ts'

const server = await startServer()

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

test.after(() => server.stop())
test.run()
