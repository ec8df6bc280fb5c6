// Every hostile request of the table, one after the other, against one server: it answers in our
// words or hangs up, and is there for the next at once.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { endServers, startServer } from '../conformance/plugin/server.ts'
import { hostileRequests } from './requests.ts'
import { headerOf, say } from './wire.ts'

const server = await startServer({ env: { LIMITS_LOGIN_PER_MINUTE: '100000' } })
const port = Number(new URL(server.root).port)
const alive = 'GET /api/v1/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'

test('there are enough of them, and no two of one name', () => {
  assert.ok(hostileRequests.length >= 150, String(hostileRequests.length))
  assert.is(new Set(hostileRequests.map(({ name }) => name)).size, hostileRequests.length)
})

for (const { name, bytes, expect, then } of hostileRequests)
  test(name, async () => {
    const heard = await say(port, bytes, then)
    // Whoever resets the connection may or may not have heard something before.
    if (then !== 'reset')
      assert.ok(expect.includes(heard.status), `${heard.status} ${heard.body.slice(0, 300)}`)
    if (
      typeof heard.status === 'number' &&
      heard.status >= 400 &&
      !/^HEAD/.test(String(bytes[0]))
    ) {
      const refusal = JSON.parse(heard.body) as { request_id: string }
      assert.equal(Object.keys(refusal), ['detail', 'code', 'request_id'])
      assert.is(refusal.request_id, headerOf(heard, 'x-request-id'))
    }
    if (heard.status === 405) assert.ok(headerOf(heard, 'allow'), 'what is offered')
    assert.is((await say(port, [alive])).status, 200, 'the next one is served')
  })

test('nothing of it was an internal error', () =>
  assert.equal(
    server.logged.filter(line => /request\.failed|http\.send/.test(line)),
    [],
  ))

test.after(endServers)
test.run()
