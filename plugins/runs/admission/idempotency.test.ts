// Starts over the API: credits that are held once, and keys that start one run.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Ledger } from '#ports/billing.ts'
import { startRuns } from '../../../test/support/runs/server.ts'

const { server, chat, events, balanceOf } = await startRuns()

test('without credits nothing starts, nothing is kept, and the key stays free', async () => {
  const who = await server.account(0)
  const refused = await chat(who, { message: 'hello', idempotency_key: 'k' })
  assert.is(refused.status, 402)
  assert.match(
    (refused.body as { detail: string }).detail,
    /0 credits does not cover the 1 credits/,
  )
  assert.equal((await server.call('GET', '/sessions', { token: who.token })).body, { items: [] })
  await server
    .engine<Ledger>('billing')
    .credit(who.org_id, { key: 'gift', amount: 5, reason: 'test' })
  const now = await chat(who, { message: 'hello', idempotency_key: 'k' })
  assert.equal([now.status, now.run.resumed], [200, false])
})

test('credits that are set aside cannot be spent twice', async () => {
  const who = await server.account(3)
  const answers = await Promise.all(
    Array.from({ length: 8 }, () => chat(who, { message: '[[stall_after=1]]' })),
  )
  assert.equal(answers.map(({ status }) => status).sort(), [200, 200, 200, 402, 402, 402, 402, 402])
  assert.equal(await balanceOf(who), { balance: 3, held: 3, available: 0 })
  await Promise.all(
    answers
      .filter(({ status }) => status === 200)
      .map(({ run }) => server.call('POST', `/runs/${run.run_id}/cancel`, { token: who.token })),
  )
})

test('a key in field or header gives the same run; another body is a conflict', async () => {
  const who = await server.account(10)
  const first = await chat(who, { message: 'hello', idempotency_key: 'order-7' })
  await events(who, first.run.run_id)
  const again = await chat(who, { message: 'hello' }, { 'idempotency-key': 'order-7' })
  assert.equal(
    [again.run.run_id, again.run.session_id, again.run.resumed, again.run.status],
    [first.run.run_id, first.run.session_id, true, 'done'],
    'as it stands now',
  )
  const within = await chat(who, {
    message: 'hello',
    idempotency_key: 'order-7',
    session_id: first.run.session_id,
  })
  assert.equal(
    [within.status, within.run.run_id],
    [200, first.run.run_id],
    'also with the session that the first answer told',
  )
  const elsewhere = await chat(who, { message: 'hello' })
  await events(who, elsewhere.run.run_id)
  assert.is(
    (
      await chat(who, {
        message: 'hello',
        idempotency_key: 'order-7',
        session_id: elsewhere.run.session_id,
      })
    ).status,
    409,
  )
  assert.is((await balanceOf(who)).balance, 8)
  const other = await chat(who, { message: 'something else', idempotency_key: 'order-7' })
  assert.is(other.status, 409)
  const both = await chat(
    who,
    { message: 'hello', idempotency_key: 'a' },
    { 'idempotency-key': 'b' },
  )
  assert.is(both.status, 400)
  const stranger = await server.account(10)
  assert.is(
    (await chat(stranger, { message: 'hello', idempotency_key: 'order-7' })).run.resumed,
    false,
    'a key belongs to its user',
  )
})

test('a start that is repeated is answered as its run stands now', async () => {
  const who = await server.account(100)
  const first = await chat(who, { message: '[[stall_after=1]]', idempotency_key: 'first' })
  const session_id = first.run.session_id
  const waits = { message: 'wait', session_id, idempotency_key: 'third' }
  const second = await chat(who, { message: 'go before', session_id })
  assert.equal(
    [(await chat(who, waits)).run.queue_seq, (await chat(who, waits)).run.queue_seq],
    [2, 2],
  )
  await server.call('POST', `/runs/${second.run.run_id}/cancel`, { token: who.token })
  const again = (await chat(who, waits)).run
  assert.equal([again.resumed, again.status, again.queue_seq], [true, 'queued', 1])
  await server.call('POST', `/runs/${first.run.run_id}/cancel`, { token: who.token })
  await events(who, first.run.run_id)
  assert.equal(
    [(await chat(who, { message: '[[stall_after=1]]', idempotency_key: 'first' })).run.status],
    ['cancelled'],
  )
})

test.after(() => server.stop())
test.run()
