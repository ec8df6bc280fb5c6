// The queue of a session over the API: its order, its bound, and its pause after a failure.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readEvents, startServer } from '../../../test/conformance/plugin/server.ts'
import { pause, startRuns, types, type Started } from '../../../test/support/runs/server.ts'

const { server, chat, events, balanceOf } = await startRuns()

test('a full queue refuses and gives the credits back', async () => {
  const who = await server.account(100)
  const first = await chat(who, { message: '[[stall_after=1]]' })
  const session_id = first.run.session_id
  for (let i = 0; i < 3; i++)
    assert.is((await chat(who, { message: 'wait', session_id })).run.queue_seq, i + 1)
  const full = await chat(who, { message: 'too many', session_id, idempotency_key: 'later' })
  assert.is(full.status, 409)
  assert.match(
    (full.body as { detail: string }).detail,
    /queue of this session is full \(3 runs wait\)/,
  )
  assert.is((await balanceOf(who)).held, 4)
  await server.call('POST', `/runs/${first.run.run_id}/cancel`, { token: who.token })
})

test('50 messages at once into one session run one after another, each once', async () => {
  const big = await startServer({
    env: { LIMITS_RUNS_PER_SECOND: '10000', LIMITS_RUNS_BURST: '10000', RUNS_SWEEP_MS: '100' },
  })
  const who = await big.account(100)
  const opening = (await big.call('POST', '/chat', { token: who.token, body: { message: 'open' } }))
    .body as Started
  const rest = await Promise.all(
    Array.from({ length: 50 }, (_, i) =>
      big.call('POST', '/chat', {
        token: who.token,
        body: { message: `n${i}`, session_id: opening.session_id },
      }),
    ),
  )
  assert.ok(rest.every(({ status }) => status === 200))
  const logs = await Promise.all(
    rest.map(async ({ body }) => readEvents(await big.stream(who.token, (body as Started).run_id))),
  )
  assert.ok(logs.every(log => log.at(-1)!.event === 'done'))
  assert.equal((await big.call('GET', '/balance', { token: who.token })).body, {
    balance: 49,
    held: 0,
    available: 49,
  })
  await big.stop()
})

test('a second message in a busy session waits its turn; other sessions do not wait', async () => {
  const who = await server.account(100)
  const first = await chat(who, { message: '[[tokens=3]] [[interval_ms=60]]' })
  const session_id = first.run.session_id
  const second = await chat(who, { message: 'second', session_id })
  const third = await chat(who, { message: 'third', session_id })
  const elsewhere = await chat(who, { message: 'elsewhere' })
  assert.equal(
    [second, third, elsewhere].map(({ run }) => [run.status, run.queue_seq]),
    [
      ['queued', 1],
      ['queued', 2],
      ['running', 0],
    ],
  )
  const queue = (await server.call('GET', `/sessions/${session_id}/queue`, { token: who.token }))
    .body as { items: { run_id: string; queue_seq: number }[]; active_run_id: string }
  assert.equal(
    [queue.active_run_id, ...queue.items.map(({ run_id: id }) => id)],
    [first, second, third].map(({ run }) => run.run_id),
  )
  await Promise.all([first, second, third].map(({ run }) => events(who, run.run_id)))
  const { body } = await server.call('GET', `/sessions/${session_id}/messages`, {
    token: who.token,
  })
  assert.equal(
    (body as { items: { role: string; content: string }[] }).items
      .filter(({ role }) => role === 'user')
      .map(({ content }) => content),
    ['[[tokens=3]] [[interval_ms=60]]', 'second', 'third'],
  )
  assert.is((await balanceOf(who)).balance, 96)
})

test('a failing model ends its run uncharged with an error, and pauses the queue', async () => {
  const who = await server.account(100)
  const first = await chat(who, { message: '[[fail_after=0]] [[interval_ms=30]]' })
  const session_id = first.run.session_id
  const second = await chat(who, { message: 'behind', session_id })
  const list = await events(who, first.run.run_id)
  assert.equal(types(list), ['usage', 'error'])
  assert.is(list.at(-1)!.data['code'], 'MODEL_FAILED')
  assert.is(list.at(-2)!.data['credits'], 0)
  await pause(50)
  assert.is(
    (
      (await server.call('GET', `/sessions/${session_id}`, { token: who.token })).body as {
        status: string
      }
    ).status,
    'paused',
  )
  const third = await chat(who, { message: 'blocked', session_id })
  assert.equal([third.run.status, third.run.queue_seq], ['blocked', 2])
  assert.is(
    (await server.call('POST', `/sessions/${session_id}/queue/resume`, { token: who.token }))
      .status,
    200,
  )
  for (const { run } of [second, third])
    assert.is((await events(who, run.run_id)).at(-1)!.event, 'done')
  assert.is((await balanceOf(who)).balance, 98)
})

test('a failure with nobody behind it pauses nothing', async () => {
  const who = await server.account(100)
  const first = await chat(who, { message: '[[fail_after=0]]' })
  await events(who, first.run.run_id)
  const next = await chat(who, { message: 'go on', session_id: first.run.session_id })
  assert.is(next.run.status, 'running')
  assert.is((await events(who, next.run.run_id)).at(-1)!.event, 'done')
})

test.after(() => server.stop())
test.run()
