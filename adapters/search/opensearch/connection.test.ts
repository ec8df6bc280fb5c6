// Failures of the service and of the line to it.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import { selfSigned, whereOpenssl } from '../../../test/support/certificate.ts'
import {
  failureOf,
  ownOrg,
  scriptedOpenSearch,
} from '../../../test/support/databases/scripted-opensearch.ts'
import { systemClock } from '../../clock/system.ts'
import { openSearch } from '../opensearch.ts'

test('a service that hangs up is asked a few times, then left alone for a while', async () => {
  let isDown = false
  await using server = await scriptedOpenSearch(() => (isDown ? 'hang up' : undefined))
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
  await using server = await scriptedOpenSearch(({ path }) =>
    path.endsWith('_search') && ++tries < 3
      ? [503, { error: { type: 'cluster_manager_not_discovered_exception', reason: '' } }]
      : undefined,
  )
  const engine = await server.open()
  assert.is(await engine.within(ownOrg).count('c'), 1)
  assert.is(tries, 3)
  await engine.close()
  await using strict = await scriptedOpenSearch((_, { headers }) =>
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

test('a full disk is told as such, and a call that takes too long ends', async () => {
  await using server = await scriptedOpenSearch(({ path }) =>
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

whereOpenssl(test)('an encrypted line is trusted by its authority alone', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'agent-platform-opensearch-tls-'))
  const { key, cert } = selfSigned(folder, 'DNS:localhost')
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
