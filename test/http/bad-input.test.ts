// Made from the contracts: every operation is fed what it must refuse. The answer is a 4xx that
// names the field, never a 5xx, and the server lives.
import { gzipSync } from 'node:zlib'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { sample, sampleQuery, wrongs } from '../conformance/plugin/sample.ts'
import { startServer, type Answer } from '../conformance/plugin/server.ts'

const free = Object.fromEntries(
  [
    'RUNS_PER_SECOND',
    'RUNS_BURST',
    'TOKEN_PER_MINUTE',
    'REGISTER_PER_HOUR',
    'LOGIN_PER_MINUTE',
    'LOGIN_PER_HOUR',
    'VERIFY_PER_HOUR',
    'REFRESH_PER_MINUTE',
  ].map(name => [`LIMITS_${name}`, '100000']),
)
const operatorToken = 'the-operator-of-this-test-0123456789'
const server = await startServer({ env: { ...free, OPERATOR_TOKEN: operatorToken } })
const { token: userToken } = await server.account()
const operations = server.kernel.host.operations()
const urlOf = (path: string, params: object = {}) =>
  path.replace(
    /\{(\w+)\}/g,
    (_, name: string) =>
      (params as Record<string, { example?: string }>)[name]?.example ?? crypto.randomUUID(),
  )
const detailOf = ({ body }: Answer) => (body as { detail?: string } | undefined)?.detail ?? ''

const expect = (
  answer: Answer,
  statuses: readonly number[],
  field: string | RegExp,
  what: string,
) => {
  assert.ok(statuses.includes(answer.status), `${what}: ${answer.status} ${answer.text}`)
  assert.match(detailOf(answer), field, what)
  assert.equal(Object.keys(answer.body as object), ['detail', 'code', 'request_id'], what)
}

for (const { key, path, operation } of operations) {
  const method = key.slice(0, key.indexOf(' '))
  const token = operation.auth === 'operator' ? operatorToken : userToken
  const call = (url: string, more: Parameters<typeof server.call>[2] = {}) =>
    server.call(method, url, { token, ...more })

  for (const name of Object.keys(operation.params ?? {}))
    test(`${key}: bad values of {${name}}`, async () => {
      const body = operation.body ? { body: sample(operation.body) } : {}
      for (const bad of [
        '1',
        'x'.repeat(3000),
        'urn:uuid:00000000-0000-7000-8000-00000000dead',
        '%00',
        '..%2F..%2Fetc',
        '{}',
        '%F0%9F%92%A5',
      ])
        expect(await call(path.replace(`{${name}}`, bad), body), [400], name, bad.slice(0, 50))
      expect(
        await call(path.replace(`{${name}}`, '%FF'), body),
        [400],
        /./,
        'invalid UTF-8 in the path',
      )
    })

  const query =
    (operation.query as { properties?: Record<string, { type?: string }> } | undefined)
      ?.properties ?? {}
  if (operation.query)
    test(`${key}: bad queries`, async () => {
      const bad: [string, RegExp][] = [
        ['nonsense=1', /nonsense/],
        ['%FF=1', /query/],
        ...Object.entries(query).flatMap(([name, { type }]): [string, RegExp][] =>
          type === 'integer'
            ? [
                [`${name}=x`, new RegExp(name)],
                [`${name}=-5`, new RegExp(name)],
                [`${name}=99999999999999999999`, new RegExp(name)],
              ]
            : [],
        ),
      ]
      if ('cursor' in query)
        bad.push(
          ['cursor=nonsense', /cursor/],
          [`cursor=${Buffer.from('["x"]').toString('base64url')}`, /cursor/],
          [`cursor=${'a'.repeat(2000)}`, /cursor/],
        )
      // A cursor or a limit is judged before or after the thing is looked for; a thing that is not
      // there is a 404.
      for (const [text, field] of bad) {
        const fits = sampleQuery(operation.query)
        const answer = await call(
          `${urlOf(path, operation.params)}${fits}${fits ? '&' : '?'}${text}`,
        )
        if (!(answer.status === 404 && operation.params)) expect(answer, [400], field, text)
      }
    })

  if (operation.reply === 'sse')
    test(`${key}: bad cursors`, async () => {
      const { body } = await server.call('POST', '/chat', { token, body: { message: 'x' } })
      const url = path.replace(/\{\w+\}/, (body as { run_id: string }).run_id)
      await (
        await fetch(server.root + url, { headers: { authorization: `Bearer ${token}` } })
      ).text()
      for (const bad of ['x', '-1', '1.5', '1e3', '99999', '9'.repeat(16), '9'.repeat(400)]) {
        expect(await call(`${url}?after=${bad}`), [400], /after|Last-Event-ID/, bad)
        expect(
          await call(url, { headers: { 'last-event-id': bad } }),
          [400],
          /Last-Event-ID|last-event-id/,
          bad,
        )
      }
    })

  if (operation.body)
    test(`${key}: bad bodies`, async () => {
      const url = urlOf(path, operation.params)
      const fits = sample(operation.body!) as Record<string, unknown>
      for (const text of ['{', '{"a":1', 'nonsense', '{"a":1}}', '[1,]', '\u0000'])
        expect(await call(url, { raw: text }), [400], /body/, `malformed: ${text}`)
      expect(
        await call(url, {
          raw: Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}')]),
        }),
        [400],
        /body: not valid UTF-8/,
        'invalid UTF-8',
      )
      expect(
        await call(url, { raw: `${'['.repeat(100)}${']'.repeat(100)}` }),
        [400],
        /body: nested deeper/,
        'deep',
      )
      expect(
        await call(url, {
          raw: `{"a":${'['.repeat(Math.min(100_000, (operation.bodyMaxBytes ?? 100_000) - 10))}`,
        }),
        [400],
        /body/,
        'very deep',
      )
      expect(
        await call(url, { raw: JSON.stringify(fits), headers: { 'content-type': 'text/plain' } }),
        [415],
        /Content-Type/,
        'text/plain',
      )
      expect(
        await call(url, {
          raw: JSON.stringify(fits),
          headers: { 'content-type': 'application/json; charset=latin1' },
        }),
        [415],
        /charset/,
        'latin1',
      )
      expect(
        await call(url, {
          raw: gzipSync(JSON.stringify(fits)),
          headers: { 'content-encoding': 'gzip' },
        }),
        [415],
        /Content-Encoding/,
        'gzip',
      )
      expect(
        await call(url, { raw: JSON.stringify(fits), headers: { 'content-encoding': 'gzip' } }),
        [415],
        /Content-Encoding/,
        'gzip that is none',
      )
      for (const { why, value, field } of wrongs(operation.body!))
        expect(await call(url, { body: value }), [400], field, why)
      for (const value of [null, 1, 'text', true])
        expect(await call(url, { body: value }), [400], /body/, JSON.stringify(value))
      expect(
        await call(url, { raw: '{"__proto__":{"x":1},"constructor":{"prototype":1}}' }),
        [400],
        /./,
        '__proto__',
      )
    })

  if (operation.body)
    test(`${key}: a body that is too large`, async () => {
      const max = operation.bodyMaxBytes ?? 1 << 20
      const answer = await call(urlOf(path, operation.params), {
        raw: `{"a":"${'x'.repeat(max)}"}`,
      }).catch((error: Error) => error)
      // The server may close before everything was sent; the client then sees the answer or the
      // closed connection.
      if (!(answer instanceof Error)) expect(answer, [413], /body: larger than/, 'oversize')
    })

  if (operation.auth !== 'public')
    test(`${key}: no token, no answer`, async () => {
      for (const headers of [
        {},
        { authorization: 'Bearer' },
        { authorization: 'Bearer nonsense' },
        { authorization: `Basic ${token}` },
        { authorization: `Bearer ${token.slice(0, -4)}AAAA` },
        { authorization: `bearer ${'x'.repeat(7000)}` },
      ]) {
        const answer = await server.call(method, urlOf(path, operation.params), {
          headers,
          ...(operation.body ? { body: sample(operation.body) } : {}),
        })
        expect(answer, [401], /token/, JSON.stringify(headers).slice(0, 60))
        assert.is(answer.headers.get('www-authenticate'), 'Bearer')
      }
    })
}

test('the server lives, and nothing was an internal error', async () => {
  assert.is((await server.call('GET', '/healthz')).status, 200)
  assert.equal(
    server.logged.filter(line => line.includes('request.failed')),
    [],
  )
})

test.after(() => server.stop())
test.run()
