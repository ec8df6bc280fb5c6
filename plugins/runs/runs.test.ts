// Runs over the API: streaming, cancelling, failing, and what is refused.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readEvents, startServer } from '../../test/conformance/plugin/server.ts'
import { pause, startRuns, types, type Started } from '../../test/support/runs/server.ts'

const { server, chat, events, balanceOf } = await startRuns()

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
