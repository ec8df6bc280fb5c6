// Clients that fall silent, and answers that come late.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { say } from '../../../test/hostile/wire.ts'
import {
  begun,
  ended,
  get,
  holding,
  large,
  serving,
  until,
} from '../../../test/support/http-adapter.ts'

const serve = serving(test)

test('a body that comes to a halt is 408, whoever reads it', async () => {
  const { port } = await serve({ silenceMs: 200 })
  for (const path of ['/body', '/pieces']) {
    const heard = await say(port, [begun(path)])
    assert.is(heard.status, 408, path)
    assert.match(heard.body, /REQUEST_TIMEOUT/)
  }
})

test('a head that does not come is 408', async () => {
  const { port } = await serve({ headMs: 200 })
  assert.is((await say(port, ['GET /who HTTP/1.1\r\nHost:'])).status, 408)
})

test('a late answer is 503, and an answer that nobody reads is dropped', async () => {
  const { port, seen } = await serve({ silenceMs: 200 })
  assert.is((await say(port, [get('/never')])).status, 503)
  const reader = await holding(port, get('/large'))
  await until(() => seen.length === 2 && seen[1]!.signal.aborted, 'the connection is ended')
  assert.ok((await ended(reader)).length < large.length)
})

test('an open stream outlives the silence only by its heartbeat; a late one ends it', async () => {
  const { port, server } = await serve({ silenceMs: 300 })
  const reader = await holding(port, get('/stream'))
  await until(() => server.openStreams() === 1, 'it is open')
  await ended(reader)
  await until(() => server.openStreams() === 0, 'it is closed')
})

test.run()
