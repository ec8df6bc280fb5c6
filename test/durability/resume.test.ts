// 200 runs through a proxy that cuts connections at random bytes, read by an ordinary SSE client.
import { createServer, connect, type AddressInfo, type Socket } from 'node:net'
import { EventSource } from 'eventsource'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { startServer } from '../conformance/plugin/server.ts'

const runsCount = 200
const tokens = 25
const server = await startServer({
  env: {
    MODELS_URL: `scripted:?tokens=${tokens}&interval_ms=40`,
    LIMITS_RUNS_PER_SECOND: '10000',
    LIMITS_RUNS_BURST: '10000',
  },
})
const { token } = await server.account(10_000)
let cuts = 0

/**
 * Lets each connection live for some bytes of the answer, then breaks it, in the middle of a frame
 * as likely as not.
 */
const proxy = createServer(client => {
  const up: Socket = connect(Number(new URL(server.root).port), '127.0.0.1')
  let left =
    cuts < runsCount * 2 ? 200 + Math.floor(Math.random() * 1500) : Number.POSITIVE_INFINITY
  up.on('data', (part: Buffer) => {
    client.write(part.subarray(0, left))
    if ((left -= part.length) > 0) return
    cuts++
    client.destroy()
    up.destroy()
  })
  client
    .on('data', part => up.write(part))
    .on('error', () => up.destroy())
    .on('close', () => up.destroy())
  up.on('error', () => client.destroy()).on('close', () => client.end())
})
await new Promise<void>(open => proxy.listen(0, '127.0.0.1', open))
const through = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/api/v1`

type Seen = { id: string; type: string; data: string }
const read = (runId: string): Promise<Seen[]> =>
  new Promise(done => {
    const seen: Seen[] = []
    const source = new EventSource(`${through}/runs/${runId}/events`, {
      fetch: (url, init) =>
        fetch(url, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } }),
    })
    for (const type of ['token', 'usage', 'done', 'error', 'superseded'])
      source.addEventListener(type, event => {
        if (!('lastEventId' in event)) return
        seen.push({ id: event.lastEventId, type, data: event.data as string })
        if (type === 'done') {
          source.close()
          done(seen)
        }
      })
  })

test('nothing is lost, repeated or reordered', async () => {
  const results = await Promise.all(
    Array.from({ length: runsCount }, async () => {
      const { body } = await server.call('POST', '/chat', { token, body: { message: 'go' } })
      const { run_id: runId } = body as { run_id: string }
      return { runId, seen: await read(runId) }
    }),
  )
  assert.ok(cuts >= runsCount, `the proxy cut ${cuts} connections`)
  for (const { runId, seen } of results) {
    const log = [
      ...(await (await server.stream(token, runId)).text()).matchAll(
        /^id: (\d+)\nevent: (\w+)\ndata: (.*)$/gm,
      ),
    ].map(([, id, type, data]) => ({ id, type, data }))
    assert.equal(seen, log)
    assert.is(seen.filter(({ type }) => type === 'token').length, tokens)
  }
})

test('eight parallel starts with one key are one run, and exactly one is not resumed', async () => {
  for (let round = 0; round < 10; round++) {
    const before = (await server.call('GET', '/balance', { token })).body as { balance: number }
    const answers = await Promise.all(
      Array.from({ length: 8 }, () =>
        server.call('POST', '/chat', {
          token,
          body: { message: 'once', idempotency_key: `same-${round}` },
        }),
      ),
    )
    const bodies = answers.map(
      ({ status, body }) => (
        assert.is(status, 200), body as { run_id: string; session_id: string; resumed: boolean }
      ),
    )
    assert.is(new Set(bodies.map(({ run_id: id }) => id)).size, 1)
    assert.is(new Set(bodies.map(({ session_id: id }) => id)).size, 1)
    assert.is(bodies.filter(({ resumed }) => !resumed).length, 1)
    await (await server.stream(token, bodies[0]!.run_id)).text()
    assert.is(
      ((await server.call('GET', '/balance', { token })).body as { balance: number }).balance,
      before.balance - 1,
    )
  }
})

test.after(async () => {
  proxy.close()
  await server.stop()
})
test.run()
