// Runs that another driver left. Their journals are made by hand, at points that a kill hits only
// by chance.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { memoryEventlog } from '#adapters/eventlog/memory.ts'
import type { Ledger } from '#ports/billing.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import type { StorageEngine } from '#ports/storage.ts'
import {
  readEvents,
  startServer,
  type TestServer,
} from '../../../test/conformance/plugin/server.ts'
import { Runs, Sessions, streamOf, type Run } from '../collections.ts'
import { ending, event, modelCallAccepted, leaseTaken } from '../journal/records.ts'

const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
const settings = { RUNS_SWEEP_MS: '50', RUNS_LEASE_MS: '300' }
type Started = { run_id: string; session_id: string }

/**
 * A run as a dead process left it: placed, with its session and its hold. `change` says how far it
 * had come.
 */
async function abandoned(
  server: TestServer,
  token: string,
  change: Partial<Run> = {},
): Promise<Run> {
  const storage = server.engine<StorageEngine>('storage')
  const { run_id: id } = (await server.call('POST', '/chat', { token, body: { message: 'model' } }))
    .body as Started
  await (await server.stream(token, id)).text()
  await pause(50)
  const {
    owner: _,
    endedAt: __,
    answer: ___,
    credits: ____,
    ...model
  } = (await storage.get(Runs, id))!
  const run: Run = {
    ...model,
    id: crypto.randomUUID(),
    sessionId: crypto.randomUUID(),
    phase: 'placed',
    status: 'running',
    due: 0,
    epoch: 1,
    beat: 1,
    placedAs: 'running',
    ...change,
  }
  await server.engine<Ledger>('billing').hold(run.orgId, { of: run.id, amount: run.hold })
  const {
    items: [session],
  } = await storage.find(Sessions, { where: { orgId: run.orgId }, limit: 1 })
  await storage.insert(Sessions, {
    ...session!,
    id: run.sessionId,
    active: run.id,
    queue: [],
    queued: 0,
  })
  return run
}
const append = (
  server: TestServer,
  run: Run,
  ...records: Parameters<EventlogEngine['append']>[1]
) => server.engine<EventlogEngine>('eventlog').append(`${run.orgId}/${streamOf(run.id)}`, records)

test('a driver that takes over after the end was decided only settles that end', async () => {
  const server = await startServer({ env: settings })
  const { token } = await server.account(10)
  const run = await abandoned(server, token)
  const usage = { inputTokens: 1, outputTokens: 3 }
  await append(
    server,
    run,
    leaseTaken(1),
    event('token', { text: 'all of it', step: 0, attempt: 1 }),
    modelCallAccepted({ step: 0, attempt: 1, finish: 'stop', input_tokens: 1, output_tokens: 3 }),
    ending({ terminal: { type: 'done', status: 'done' }, usage, charged: true }),
    event('usage', {
      input_tokens: 1,
      output_tokens: 3,
      total_tokens: 4,
      credits: 1,
      model: 'scripted',
    }),
  )
  await server.engine<StorageEngine>('storage').insert(Runs, run)
  const list = await readEvents(await server.stream(token, run.id))
  assert.equal(
    list.map(({ event: type }) => type),
    ['token', 'usage', 'done'],
  )
  await pause(100)
  assert.equal(
    (await server.call('GET', '/balance', { token })).body,
    { balance: 8, held: 0, available: 8 },
    'two runs, two credits',
  )
  await server.stop()
})

test('what was charged before the crash is not charged again by the new driver', async () => {
  const server = await startServer({ env: settings })
  const { token } = await server.account(10)
  const run = await abandoned(server, token)
  await append(server, run, leaseTaken(1))
  await server
    .engine<Ledger>('billing')
    .capture(run.orgId, { of: run.id, amount: 0, reason: 'by the dead one' })
  await server.engine<StorageEngine>('storage').insert(Runs, run)
  assert.is((await readEvents(await server.stream(token, run.id))).at(-1)!.event, 'done')
  await pause(100)
  assert.equal((await server.call('GET', '/balance', { token })).body, {
    balance: 9,
    held: 0,
    available: 9,
  })
  await server.stop()
})

test('an admission that a crash cut short after the claim is finished', async () => {
  const server = await startServer({ env: settings })
  const { token } = await server.account(10)
  const run = await abandoned(server, token, {
    phase: 'admitting',
    epoch: 0,
    beat: 0,
    createdAt: Date.now() - 60_000,
  })
  await server.engine<StorageEngine>('storage').insert(Runs, run)
  await pause(150)
  assert.is((await readEvents(await server.stream(token, run.id))).at(-1)!.event, 'done')
  await server.stop()
})

test('a refusal that a crash cut short is finished: the claim goes, nothing runs', async () => {
  const server = await startServer({ env: settings })
  const { token } = await server.account(10)
  const run = await abandoned(server, token, {
    phase: 'admitting',
    epoch: 0,
    beat: 0,
    createdAt: Date.now() - 60_000,
  })
  await server.engine<Ledger>('billing').release(run.orgId, { of: run.id, reason: 'not placed' })
  await server.engine<StorageEngine>('storage').insert(Runs, run)
  await pause(200)
  assert.is(await server.engine<StorageEngine>('storage').get(Runs, run.id), undefined)
  assert.equal((await server.call('GET', '/balance', { token })).body, {
    balance: 9,
    held: 0,
    available: 9,
  })
  await server.stop()
})

test('a driver whose lease was taken writes nothing more', async () => {
  const server = await startServer({ env: { ...settings, RUNS_LEASE_MS: '60000' } })
  const { token } = await server.account(10)
  const storage = server.engine<StorageEngine>('storage')
  const { run_id: id } = (
    await server.call('POST', '/chat', {
      token,
      body: { message: '[[interval_ms=50]] [[tokens=12]]' },
    })
  ).body as Started
  await pause(150)
  const run = (await storage.get(Runs, id))!
  const last = await append(server, run, leaseTaken(2))
  await pause(300)
  const log = await server.engine<EventlogEngine>('eventlog').read(`${run.orgId}/${streamOf(id)}`)
  assert.is(log.at(-1)!.seq, last, 'the stream stands where the new driver put it')
  await server.stop()
})

test('a reader who joins gets nothing that is not on disk yet', async () => {
  let release = () => {}
  let gate: Promise<void> | undefined
  const log = memoryEventlog()
  const server = await startServer({
    env: settings,
    given: { eventlog: { ...log, durable: () => gate ?? log.durable() } },
  })
  const { token } = await server.account(10)
  const { run_id: id } = (await server.call('POST', '/chat', { token, body: { message: 'x' } }))
    .body as Started
  await (await server.stream(token, id)).text()
  gate = new Promise(open => {
    release = open
  })
  let answered = false
  const joining = server.stream(token, id).then(response => {
    answered = true
    return response.text()
  })
  await pause(150)
  assert.is(answered, false)
  release()
  assert.match(await joining, /event: done/)
  gate = undefined
  await server.stop()
})

test.run()
