// The kit against the server that OPENSEARCH_URL names. Each check has a prefix of its own.
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import { opening } from '../../test/conformance/opening.ts'
import { freshPrefix, openSearchUrl } from '../../test/support/databases/opensearch.ts'
import { index, ownOrg, plain } from '../../test/conformance/search/common.ts'
import { searchKit } from '../../test/conformance/search.ts'
import { systemClock } from '../clock/system.ts'
import { openSearch } from './opensearch.ts'

// A pause between tries does not keep the process alive, so this timer does.
const awake = setInterval(() => undefined, 1000)
test.after(() => clearInterval(awake))

const secret = (name: string) => process.env[name]
if (openSearchUrl === undefined)
  test.skip('opensearch: the kit (OPENSEARCH_URL is not set)', () => undefined)
else {
  searchKit(test, 'opensearch', {
    survives: true,
    lacks: { exactStatistics: 'Lucene counts what was replaced until its segments are merged' },
    place: async () => {
      const { url } = freshPrefix()
      return { open: () => openSearch(opening(url.href, { clock: systemClock(), secret })) }
    },
  })
}

if (openSearchUrl !== undefined)
  test('opensearch: a writer takes over the change of a process that died', async () => {
    const { url, prefix } = freshPrefix()
    const time = systemClock()
    const faster = 100
    const engine = await openSearch(
      opening(url.href, {
        clock: {
          ...time,
          monotonic: () => time.monotonic() * faster,
          sleep: (ms, signal) => time.sleep(ms / faster, signal),
        },
        secret,
      }),
    )
    const patient = await openSearch(opening(url.href, { clock: time, secret }))
    const raw = (method: string, path: string, body?: object) =>
      fetch(`http://${url.host}/${path}`, {
        method,
        headers: { 'content-type': 'application/json' },
        ...(body ? { body: JSON.stringify(body) } : {}),
      }).then(response => response.json() as Promise<Record<string, object>>)
    try {
      await engine.within(ownOrg).define('c', plain)
      await index(engine.within(ownOrg), 'c', [{ id: 'a', text: 'running' }])
      const [first] = Object.keys(await raw('GET', `${prefix}.*`))
      const next = first!.replace('-000001', '-000002')
      await raw('PUT', next, {
        mappings: { _meta: { org: ownOrg, collection: 'c', beat: 'the last' } },
        aliases: { [`${next}-filling`]: {} },
      })
      assert.equal(
        await engine.addresses({ limit: 10 }),
        [`${ownOrg}/c`],
        'what is being filled is no collection yet',
      )
      await raw('PUT', `${first}/_block/write`)
      const waiting = patient.within(ownOrg).index('c', [{ id: 'b', text: 'runs' }])
      await engine.within(ownOrg).define('c', { languages: ['en'] })
      assert.equal((await waiting).errors, [])
      assert.equal(
        (await engine.within(ownOrg).query('c', { text: 'run' })).hits.map(({ id }) => id).sort(),
        ['a', 'b'],
      )
      assert.equal(Object.keys(await raw('GET', `${prefix}.*`)), [next])
      // Defines the same collection again while a dead process's block of writes remains.
      await raw('PUT', `${next}/_block/write`)
      await engine.within(ownOrg).define('c', { languages: ['en'] })
      await index(engine.within(ownOrg), 'c', [{ id: 'c', text: 'ran' }])
      await engine.within(ownOrg).drop('c')
    } finally {
      await engine.close()
      await patient.close()
    }
  })

if (openSearchUrl !== undefined)
  test('opensearch: a change whose last answer was lost stands, and removes nothing', async () => {
    const { url } = freshPrefix()
    const lost: string[] = []
    // The first call is carried out, and then its connection breaks.
    const between = createServer(
      (request, response) =>
        void (async () => {
          const { method, url: path, headers } = request
          const body = await buffer(request)
          const answer = await fetch(`http://${url.host}${path}`, {
            method: method!,
            headers: { 'content-type': headers['content-type'] ?? 'application/json' },
            ...(body.length > 0 ? { body } : {}),
          })
          const text = await answer.text()
          if (path === '/_aliases' && lost.push(text) === 1) return request.socket.destroy()
          response.writeHead(answer.status, { 'content-type': 'application/json' }).end(text)
        })(),
    ).listen(0, '127.0.0.1')
    await once(between, 'listening')
    const through = new URL(url.href)
    through.port = String((between.address() as AddressInfo).port)
    const engine = await openSearch(opening(through.href, { clock: systemClock(), secret }))
    const passages = engine.within(ownOrg)
    try {
      await passages.define('c', plain)
      await index(passages, 'c', [{ id: 'a', text: 'running' }])
      await passages.define('c', { languages: ['en'] })
      assert.ok(lost.length > 1 && lost[0]!.includes('"acknowledged":true'), lost.join())
      assert.equal(
        (await passages.query('c', { text: 'runs' })).hits.map(({ id }) => id),
        ['a'],
      )
      await index(passages, 'c', [{ id: 'b', text: 'ran, running' }])
      await passages.drop('c')
    } finally {
      await engine.close()
      between.closeAllConnections()
      between.close()
    }
  })

test('opensearch: an error without a server shows neither address nor password', async () => {
  const error = await openSearch(
    opening('opensearch://127.0.0.1:1/x', {
      clock: systemClock(),
      secret: name => (name === 'OPENSEARCH_USERNAME' ? 'somebody' : 'hidden-word'),
    }),
  ).then(
    () => undefined,
    (reason: Error) => reason,
  )
  assert.ok(hasCode(error, 'UNAVAILABLE'))
  assert.is(error.message, 'The search service is not available: the connection failed.')
})

test('opensearch: a URL that cannot be meant is refused by its field', async () => {
  for (const [url, field] of [
    ['opensearch:x', 'SEARCH_URL'],
    ['opensearch://ann:hidden@host:9200/', 'SEARCH_URL'],
    ['opensearch://host:9200/A', 'SEARCH_URL'],
    ['opensearch://host:9200/a/b', 'SEARCH_URL'],
    ['opensearch://host:9200/?tls=maybe', 'tls'],
    ['opensearch://host:9200/?ca=/nowhere', 'ca'],
    ['opensearch://host:9200/?shards=0', 'shards'],
    ['opensearch://host:9200/?timeout_ms=1', 'timeout_ms'],
  ] as const) {
    const error = await openSearch(opening(url, { clock: systemClock() })).then(
      () => undefined,
      (reason: Error) => reason,
    )
    assert.ok(
      hasCode(error, 'INVALID_FIELD') && error.values['field'] === field,
      `${url}: ${error?.message}`,
    )
    assert.not.match(error.message, /hidden/)
  }
})

test.run()
