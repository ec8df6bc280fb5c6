// Runs over the API: admission, the queue of a session, cancelling, failing, paying, repeating.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Ledger } from '#ports/billing.ts'
import { readEvents, startServer, type Account } from '../../test/conformance/plugin/server.ts'

const server = await startServer({
  env: {
    LIMITS_RUNS_PER_SECOND: '10000',
    LIMITS_RUNS_BURST: '10000',
    RUNS_QUEUE_MAX: '3',
    RUNS_STALL_MS: '400',
    RUNS_LEASE_MS: '600',
    RUNS_SWEEP_MS: '100',
  },
})
type Started = {
  run_id: string
  session_id: string
  status: string
  queue_seq: number
  resumed: boolean
  cursor: number
}
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
const chat = async (who: Account, body: object, headers: Record<string, string> = {}) => {
  const answer = await server.call('POST', '/chat', { token: who.token, body, headers })
  return { ...answer, run: answer.body as Started }
}
const events = async (who: Account, runId: string) =>
  readEvents(await server.stream(who.token, runId))
const types = (list: { event: string }[]) => list.map(({ event }) => event)
const balanceOf = async (who: Account) =>
  (await server.call('GET', '/balance', { token: who.token })).body as {
    balance: number
    held: number
    available: number
  }

test('a run streams its answer, tells its usage, and ends once', async () => {
  const who = await server.account(10)
  const { status, run } = await chat(who, { message: 'hello' })
  assert.is(status, 200)
  assert.equal([run.status, run.queue_seq, run.resumed, run.cursor], ['running', 0, false, 0])
  const list = await events(who, run.run_id)
  assert.equal(types(list), ['token', 'token', 'token', 'token', 'token', 'usage', 'done'])
  assert.is(
    list
      .slice(0, 5)
      .map(({ data }) => data['text'])
      .join(''),
    'token00 token01 token02 token03 token04 ',
  )
  assert.equal(list.at(-1)!.data, { status: 'done', session_id: run.session_id })
  assert.equal(await balanceOf(who), { balance: 9, held: 0, available: 9 })
})

test('POST /tasks is the same, detached', async () => {
  const who = await server.account(10)
  const { body } = await server.call('POST', '/tasks', {
    token: who.token,
    body: { message: 'hello' },
  })
  await pause(100)
  const { body: session } = await server.call('GET', `/sessions/${(body as Started).session_id}`, {
    token: who.token,
  })
  assert.equal(
    [
      (session as { status: string }).status,
      (session as { runs: { status: string; credits: number }[] }).runs.map(
        ({ status, credits }) => [status, credits],
      ),
    ],
    ['idle', [['done', 1]]],
  )
})

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

test('cancel stops the work, ends the stream, frees credits and starts the next run', async () => {
  const who = await server.account(100)
  const first = await chat(who, { message: '[[stall_after=2]]' })
  const second = await chat(who, { message: 'next', session_id: first.run.session_id })
  const list = readEvents(await server.stream(who.token, first.run.run_id))
  await pause(50)
  const { body } = await server.call('POST', `/runs/${first.run.run_id}/cancel`, {
    token: who.token,
  })
  assert.equal(body, { run_id: first.run.run_id, status: 'running', cancelling: true })
  const ended = await list
  assert.equal(types(ended), ['token', 'token', 'usage', 'done'])
  assert.is(ended.at(-1)!.data['status'], 'cancelled')
  assert.is((await events(who, second.run.run_id)).at(-1)!.data['status'], 'done')
  const again = await server.call('POST', `/runs/${first.run.run_id}/cancel`, { token: who.token })
  assert.equal(again.body, { run_id: first.run.run_id, status: 'cancelled', cancelling: false })
  assert.is((await balanceOf(who)).held, 0)
})

test('a queued run can be cancelled before it starts, and costs nothing', async () => {
  const who = await server.account(100)
  const first = await chat(who, { message: '[[tokens=3]] [[interval_ms=100]]' })
  const second = await chat(who, { message: 'never', session_id: first.run.session_id })
  await server.call('POST', `/runs/${second.run.run_id}/cancel`, { token: who.token })
  const list = await events(who, second.run.run_id)
  assert.equal(types(list), ['usage', 'done'])
  assert.equal([list[0]!.data['credits'], list[1]!.data['status']], [0, 'cancelled'])
  assert.is(
    (await events(who, first.run.run_id)).at(-1)!.data['status'],
    'done',
    'the run in front is untouched',
  )
  assert.equal(await balanceOf(who), { balance: 99, held: 0, available: 99 })
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

test('deleting a conversation with a paused queue returns the credits of its runs', async () => {
  const who = await server.account(100)
  const first = await chat(who, { message: '[[fail_after=0]] [[interval_ms=30]]' })
  const session_id = first.run.session_id
  const second = await chat(who, { message: 'behind', session_id })
  await events(who, first.run.run_id)
  const status = async () =>
    (
      (await server.call('GET', `/sessions/${session_id}`, { token: who.token })).body as {
        status: string
      }
    ).status
  for (let tries = 0; (await status()) !== 'paused'; tries++) {
    assert.ok(tries < 200, 'it is never paused')
    await pause(10)
  }
  assert.ok((await balanceOf(who)).held > 0)
  assert.is(
    (await server.call('DELETE', `/sessions/${session_id}`, { token: who.token })).status,
    204,
  )
  assert.is(
    (await server.call('GET', `/runs/${second.run.run_id}/events`, { token: who.token })).status,
    404,
  )
  assert.equal(await balanceOf(who), { balance: 100, held: 0, available: 100 })
})

test('a failure with nobody behind it pauses nothing', async () => {
  const who = await server.account(100)
  const first = await chat(who, { message: '[[fail_after=0]]' })
  await events(who, first.run.run_id)
  const next = await chat(who, { message: 'go on', session_id: first.run.session_id })
  assert.is(next.run.status, 'running')
  assert.is((await events(who, next.run.run_id)).at(-1)!.event, 'done')
})

test('a model that breaks off or falls silent goes on from there, paid once', async () => {
  const who = await server.account(100)
  for (const message of ['[[fail_after=2]]', '[[stall_after=2]]']) {
    const { run } = await chat(who, { message })
    const list = await events(who, run.run_id)
    assert.equal(types(list), [
      'token',
      'token',
      'superseded',
      'token',
      'token',
      'token',
      'usage',
      'done',
    ])
    assert.equal(list[2]!.data, {
      step: 0,
      attempt: 1,
      keep: 'token00 token01 '.length,
      reason: 'failed',
    })
    assert.equal(
      list
        .filter(({ event }) => event === 'token')
        .map(({ data }) => [data['attempt'], data['text']]),
      [
        [1, 'token00 '],
        [1, 'token01 '],
        [2, 'token02 '],
        [2, 'token03 '],
        [2, 'token04 '],
      ],
    )
    assert.is(list.at(-2)!.data['credits'], 1)
  }
})

test('a model that stays silent is given up', async () => {
  const who = await server.account(100)
  const { run } = await chat(who, { message: '[[stall_after=0]]' })
  const list = await events(who, run.run_id)
  assert.equal([types(list), list.at(-1)!.data['code']], [['usage', 'error'], 'MODEL_FAILED'])
})

test('what cannot be is refused before any work, naming the field', async () => {
  const who = await server.account(100)
  for (const [body, status, field] of [
    [{ message: 'x', model: 'gpt-none' }, 400, /^model: /],
    [{ message: 'x', app_name: 'nobody' }, 404, /agent \(app_name\)/],
    [{ message: 'x', client_tz: 'Mars/Olympus' }, 400, /^client_tz: /],
    [{ message: '' }, 400, /^message: /],
    [{ message: 'x', surprise: 1 }, 400, /^surprise: /],
    [{ message: 'x', session_id: crypto.randomUUID() }, 404, /session/],
    [{ message: 'x', attachments: [crypto.randomUUID()] }, 404, /upload/],
    [{ message: 'x', kb_ids: [crypto.randomUUID()] }, 404, /knowledge base/],
  ] as const) {
    const answer = await chat(who, body)
    assert.is(answer.status, status)
    assert.match((answer.body as { detail: string }).detail, field)
  }
  assert.equal(await balanceOf(who), { balance: 100, held: 0, available: 100 })
})

test('sessions are listed by latest use, renamed, and deleted with their contents', async () => {
  const who = await server.account(100)
  const ids: string[] = []
  for (const message of ['one', 'two', 'three']) {
    const { run } = await chat(who, { message })
    await events(who, run.run_id)
    ids.unshift(run.session_id)
  }
  const page = (await server.call('GET', '/sessions?limit=2', { token: who.token })).body as {
    items: { id: string; title: string }[]
    next_cursor: string
  }
  assert.equal(
    page.items.map(({ title }) => title),
    ['three', 'two'],
  )
  const rest = (
    await server.call('GET', `/sessions?limit=2&cursor=${encodeURIComponent(page.next_cursor)}`, {
      token: who.token,
    })
  ).body as typeof page
  assert.equal([rest.items.map(({ title }) => title), rest.next_cursor], [['one'], undefined])
  const renamed = await server.call('PATCH', `/sessions/${ids[0]}`, {
    token: who.token,
    body: { title: 'A better name' },
  })
  assert.is((renamed.body as { title: string }).title, 'A better name')
  const { runs } = (await server.call('GET', `/sessions/${ids[0]}`, { token: who.token })).body as {
    runs: { run_id: string }[]
  }
  assert.is((await server.call('DELETE', `/sessions/${ids[0]}`, { token: who.token })).status, 204)
  for (const path of [
    `/sessions/${ids[0]}`,
    `/sessions/${ids[0]}/messages`,
    `/runs/${runs[0]!.run_id}/events`,
  ])
    assert.is((await server.call('GET', path, { token: who.token })).status, 404)
  const busy = await chat(who, { message: '[[stall_after=0]]' })
  assert.is(
    (await server.call('DELETE', `/sessions/${busy.run.session_id}`, { token: who.token })).status,
    409,
  )
})

test('a later run in a session knows what was said before', async () => {
  const offline = await startServer({ env: { MODELS_URL: 'offline:?interval_ms=0' } })
  const who = await offline.account(100)
  const ask = async (message: string, session_id?: string) => {
    const run = (
      await offline.call('POST', '/chat', {
        token: who.token,
        body: { message, ...(session_id ? { session_id } : {}) },
      })
    ).body as Started
    const list = await readEvents(await offline.stream(who.token, run.run_id))
    return {
      run,
      text: list
        .filter(({ event }) => event === 'token')
        .map(({ data }) => data['text'])
        .join(''),
    }
  }
  const first = await ask('The lighthouse of Marabout was built in 1907.')
  const second = await ask('When was the lighthouse of Marabout built?', first.run.session_id)
  assert.match(second.text, /1907/)
  await offline.stop()
})

test('GET /models says plainly what the model is', async () => {
  const offline = await startServer({ env: { MODELS_URL: 'offline:' } })
  const who = await offline.account(1)
  const { items } = (await offline.call('GET', '/models', { token: who.token })).body as {
    items: { is_default: boolean; description: string }[]
  }
  assert.is(items.filter(({ is_default: isDefault }) => isDefault).length, 1)
  assert.match(items[0]!.description, /MODELS_URL/)
  await offline.stop()
})

test.after(() => server.stop())
test.run()
