// A message to an agent as a request: how often, how long, with which values, how it is counted.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { manualClock } from '../../adapters/clock/manual.ts'
import { startServer } from '../conformance/plugin/server.ts'

const server = await startServer({ env: { MODELS_URL: 'scripted:?tokens=5&interval_ms=0' } })

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
