// Event streams as clients read them: cursors, EventSource, headers, and clients that go away.
import { EventSource } from 'eventsource'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { startServer } from '../conformance/plugin/server.ts'

const server = await startServer({ env: { MODELS_URL: 'scripted:?tokens=5&interval_ms=0' } })
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

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

test.after(() => server.stop())
test.run()
