// Failures that a healthy server does not show, played by a server of this test.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import { systemClock } from '../../clock/system.ts'
import { analysisVersion } from '../analysis/analyser.ts'
import { openSearch } from '../opensearch.ts'

const ownOrg = '01890000-0000-7000-8000-00000000000a'
type Call = { readonly path: string; readonly body: string }
type Answer = readonly [status: number, body: object]
const busy = { type: 'rejected_execution_exception', reason: 'the queue is full' }

/** `answer` handles a call first. Calls that it leaves get a healthy server's answer. */
async function serverOf(
  answer: (call: Call, request: IncomingMessage) => Answer | 'hang up' | undefined,
) {
  const calls: Call[] = []
  const meta = {
    org: ownOrg,
    collection: 'c',
    spec: { languages: ['none'], dimensions: 0, fields: {} },
    analysis: analysisVersion,
  }
  const healthy = ({ path, body }: Call): Answer => {
    if (path.endsWith('_bulk'))
      return [
        200,
        {
          items: body
            .trim()
            .split('\n')
            .filter((_, at) => at % 2 === 0)
            .map(line => ({
              index: {
                _index: 'i-000001',
                _id: (JSON.parse(line) as { index: { _id: string } }).index._id,
                status: 201,
                result: 'created',
              },
            })),
        },
      ]
    if (path === '/_cluster/health') return [200, { number_of_data_nodes: 1 }]
    if (path.endsWith('_search')) return [200, { hits: { total: { value: 1 } } }]
    return [
      200,
      path.endsWith('_refresh')
        ? {}
        : { 'i-000001': { aliases: {}, mappings: { _meta: meta }, settings: { index: {} } } },
    ]
  }
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const call = { path: request.url!.split('?')[0]!, body: await text(request) }
    calls.push(call)
    const told = answer(call, request) ?? healthy(call)
    if (told === 'hang up') return void request.socket.destroy()
    response.writeHead(told[0], { 'content-type': 'application/json' }).end(JSON.stringify(told[1]))
  }
  const server = createServer((request, response) => void handle(request, response)).listen(
    0,
    '127.0.0.1',
  )
  await new Promise(resolve => server.once('listening', resolve))
  const url = new URL(`opensearch://127.0.0.1:${(server.address() as AddressInfo).port}/x`)
  return {
    calls,
    count: (part: string) => calls.filter(({ path }) => path.includes(part)).length,
    open: (more = '') =>
      openSearch({
        url: new URL(url.href + more),
        clock: systemClock(),
        secret: name => ({ OPENSEARCH_USERNAME: 'ann', OPENSEARCH_PASSWORD: 'hidden-word' })[name],
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    },
  }
}
const whereOpenssl = spawnSync('openssl', ['version']).status === 0 ? test : test.skip
const failureOf = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error: unknown) => error as Error,
  )

test('passages that the service had no room for are sent again, and only they', async () => {
  const sent: string[][] = []
  await using server = await serverOf(({ path, body }) => {
    if (!path.endsWith('_bulk')) return undefined
    const ids = body
      .trim()
      .split('\n')
      .filter((_, at) => at % 2 === 0)
      .map(line => (JSON.parse(line) as { index: { _id: string } }).index._id)
    sent.push(ids)
    if (sent.length === 1) return [429, { error: busy, status: 429 }]
    const full = (id: string) => sent.length === 2 && id !== 'a'
    return [
      200,
      {
        errors: true,
        items: ids.map(id => ({
          index: full(id)
            ? { _index: 'i-000001', _id: id, status: 429, error: busy }
            : id === 'bad'
              ? {
                  _index: 'i-000001',
                  _id: id,
                  status: 400,
                  error: {
                    type: 'mapper_parsing_exception',
                    reason: 'secret words of the customer',
                  },
                }
              : { _index: 'i-000001', _id: id, status: 201, result: 'created' },
        })),
      },
    ]
  })
  const engine = await server.open()
  const { indexed, errors } = await engine.within(ownOrg).index(
    'c',
    ['a', 'b', 'bad'].map(id => ({ id, text: id })),
  )
  assert.equal(sent, [
    ['a', 'b', 'bad'],
    ['a', 'b', 'bad'],
    ['b', 'bad'],
  ])
  assert.equal(
    [indexed, errors.map(({ at, id, error }) => [at, id, error.code])],
    [2, [[2, 'bad', 'UNAVAILABLE']]],
  )
  assert.not.match(errors[0]!.error.message, /secret/)
  await engine.close()
})

test('a load is cut into calls, of which few are under way at once', async () => {
  await using server = await serverOf(() => undefined)
  const engine = await server.open()
  const passages = engine.within(ownOrg)
  await passages.index(
    'c',
    Array.from({ length: 1000 }, (_, at) => ({ id: `${at}`, text: 'x'.repeat(8000) })),
  )
  assert.ok(server.count('_bulk') >= 8, `${server.count('_bulk')} calls`)
  for (const { body } of server.calls) assert.ok(body.length < 5_000_000)
  await engine.close()
})

test('a service that hangs up is asked a few times, then left alone for a while', async () => {
  let isDown = false
  await using server = await serverOf(() => (isDown ? 'hang up' : undefined))
  const engine = await server.open()
  const passages = engine.within(ownOrg)
  await passages.count('c')
  isDown = true
  const error = await failureOf(passages.count('c'))
  const asked = server.calls.length
  assert.ok(hasCode(error, 'UNAVAILABLE') && error.retryAfterMs !== undefined)
  assert.not.match(error.message + JSON.stringify(error.values), /127\.0\.0\.1|hidden-word|ann/)
  for (let at = 0; at < 20; at++)
    assert.ok(hasCode(await failureOf(passages.count('c')), 'UNAVAILABLE'))
  assert.is(server.calls.length, asked, 'twenty more calls, none of them made')
  await engine.close()
})

test('a service on its way up is tried again; one that refuses the user is not', async () => {
  let tries = 0
  await using server = await serverOf(({ path }) =>
    path.endsWith('_search') && ++tries < 3
      ? [503, { error: { type: 'cluster_manager_not_discovered_exception', reason: '' } }]
      : undefined,
  )
  const engine = await server.open()
  assert.is(await engine.within(ownOrg).count('c'), 1)
  assert.is(tries, 3)
  await engine.close()
  await using strict = await serverOf((_, { headers }) =>
    headers.authorization === `Basic ${Buffer.from('ann:hidden-word').toString('base64')}`
      ? [401, { error: 'no' }]
      : undefined,
  )
  const error = await failureOf(strict.open())
  assert.is(
    error?.message,
    'The search service is not available: it refuses the user, or what the user may do.',
  )
  assert.is(strict.calls.length, 1)
})

test('what only a part of the shards would say is not asked for', async () => {
  const asked: string[] = []
  await using server = await serverOf(({ path }, { url }) => {
    if (path.endsWith('_search')) asked.push(url!)
    return path.endsWith('_count')
      ? [200, { count: 0, _shards: { total: 2, successful: 1, failed: 1 } }]
      : undefined
  })
  const engine = await server.open()
  assert.is(await engine.within(ownOrg).count('c'), 1)
  assert.ok(
    asked.length === 1 && asked[0]!.includes('allow_partial_search_results=false'),
    asked.join(),
  )
  await engine.close()
})

test('a full disk is told as such, and a call that takes too long ends', async () => {
  await using server = await serverOf(({ path }) =>
    path.endsWith('_bulk')
      ? [
          429,
          {
            error: {
              type: 'cluster_block_exception',
              reason:
                'index [x] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded ' +
                'flood-stage watermark, index has read-only-allow-delete block];',
            },
          },
        ]
      : undefined,
  )
  const engine = await server.open()
  assert.ok(
    hasCode(
      await failureOf(engine.within(ownOrg).index('c', [{ id: 'a', text: 'x' }])),
      'STORAGE_FULL',
    ),
  )
  assert.is(server.count('_bulk'), 1)
  await engine.close()
  const silent = createServer(() => undefined).listen(0, '127.0.0.1')
  await new Promise(resolve => silent.once('listening', resolve))
  const late = await failureOf(
    openSearch({
      url: new URL(
        `opensearch://127.0.0.1:${(silent.address() as AddressInfo).port}/?timeout_ms=100`,
      ),
      clock: systemClock(),
      secret: () => undefined,
    }),
  )
  assert.is(late?.message, 'The search service is not available: it did not answer in time.')
  silent.closeAllConnections()
  silent.close()
})

whereOpenssl('an encrypted line is trusted by its authority alone', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-platform-opensearch-tls-'))
  const key = join(folder, 'key.pem')
  const cert = join(folder, 'cert.pem')
  execFileSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-keyout',
      key,
      '-out',
      cert,
      '-days',
      '2',
      '-subj',
      '/CN=localhost',
      '-addext',
      'subjectAltName=DNS:localhost',
    ],
    { stdio: 'ignore' },
  )
  const server = createSecureServer(
    { key: readFileSync(key), cert: readFileSync(cert) },
    (_, response) =>
      void response
        .writeHead(200, { 'content-type': 'application/json' })
        .end('{"number_of_data_nodes":1}'),
  ).listen(0)
  await new Promise(resolve => server.once('listening', resolve))
  const open = (more: string) =>
    openSearch({
      url: new URL(`opensearch://localhost:${(server.address() as AddressInfo).port}/${more}`),
      clock: systemClock(),
      secret: () => undefined,
    })
  await (await open(`?tls=true&ca=${encodeURIComponent(cert)}`)).close()
  for (const more of ['?tls=true', ''])
    assert.ok(hasCode(await failureOf(open(more)), 'UNAVAILABLE'), more)
  server.closeAllConnections()
  server.close()
  rmSync(folder, { recursive: true })
})

test.run()
