// An organisation's events stay within their bound: the oldest ended runs lose theirs first, and
// readers are told.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { StorageEngine } from '#ports/storage.ts'
import {
  endServers,
  readEvents,
  startServer,
  type Account,
} from '../../../test/conformance/plugin/server.ts'
import { EventBytes, Runs, type Run } from '../collections.ts'

const runBytes = 5000
async function served(env: Record<string, string> = {}) {
  const server = await startServer({
    env: {
      LOG_LEVEL: 'info',
      MODELS_URL: 'scripted:?tokens=400&interval_ms=0',
      RUNS_RETENTION_MS: '50',
      RUNS_COMPACT_AFTER_MS: '0',
      LIMITS_RUNS_PER_SECOND: '1000',
      LIMITS_RUNS_BURST: '1000',
      ...env,
    },
  })
  const storage = server.engine<StorageEngine>('storage')
  const text = async () => (await server.call('GET', '/metrics')).text
  return {
    server,
    storage,
    figure: async (name: string) =>
      Number(
        (await text())
          .split('\n')
          .find(line => line.startsWith(`${name} `))
          ?.split(' ')[1] ?? 0,
      ),
    async run({ token }: Account, message = 'hello'): Promise<string> {
      const { run_id } = (await server.call('POST', '/chat', { token, body: { message } }))
        .body as { run_id: string }
      await readEvents(await server.stream(token, run_id))
      return run_id
    },
    read: async ({ token }: Account, id: string) => readEvents(await server.stream(token, id)),
    get: async (id: string): Promise<Run> => (await storage.get(Runs, id))!,
    counted: async ({ org_id }: Account) => (await storage.get(EventBytes, org_id))?.bytes ?? 0,
    async until(what: string, holds: () => Promise<boolean>) {
      for (let tries = 0; !(await holds()); tries++) {
        assert.ok(tries < 1000, `it never came: ${what}`)
        await new Promise(resolve => setTimeout(resolve, 10))
      }
    },
  }
}

test("beyond the bound an organisation's oldest ended runs keep only their ends", async () => {
  const { server, run, read, get, counted, until, figure } = await served({
    RUNS_EVENTS_BYTES_MAX_PER_ORG: String(4 * runBytes),
  })
  const rich = await server.account()
  const poor = await server.account()
  const other = await run(poor)
  const ids: string[] = []
  for (let n = 0; n < 6; n++) ids.push(await run(rich))
  const size = async (id: string) => {
    await until(`run ${id} is small`, async () => (await get(id)).compacted === true)
    return (await get(id)).keptBytes ?? 0
  }
  await size(other)
  await until(
    'the bound holds',
    async () =>
      (await Promise.all(ids.map(async id => (await get(id)).compacted))).every(Boolean) &&
      (await counted(rich)) <= 4 * runBytes &&
      (await figure('runs_events_freed_bytes_total{reason="size"}')) > 0,
  )
  const kept = await Promise.all(ids.map(async id => (await get(id)).keptBytes !== undefined))
  const gone = kept.indexOf(true)
  assert.ok(gone > 0, 'something went')
  assert.equal(
    kept,
    ids.map((_, at) => at >= gone),
    'the oldest went first',
  )
  const sum = (await Promise.all(ids.map(async id => (await get(id)).keptBytes ?? 0))).reduce(
    (all, bytes) => all + bytes,
    0,
  )
  assert.equal(await counted(rich), sum)
  assert.equal(
    (await read(rich, ids[0]!)).map(({ event }) => event),
    ['gone', 'usage', 'done'],
  )
  assert.ok((await read(rich, ids.at(-1)!)).some(({ event }) => event === 'token'))
  assert.ok((await read(poor, other)).some(({ event }) => event === 'token'))
  const freed = await figure('runs_events_freed_bytes_total{reason="size"}')
  const lines = server.logged
    .map(line => JSON.parse(line) as Record<string, unknown>)
    .filter(({ event }) => event === 'runs.retention.freed')
  assert.ok(freed > 0.8 * gone * ((await get(ids.at(-1)!)).keptBytes ?? 0), `${freed} bytes`)
  assert.ok((await figure('runs_events_trimmed_total{reason="size"}')) > 0)
  assert.ok(
    lines.length > 0 &&
      lines.every(
        ({ runs, events, bytes, plugin }) =>
          Number(runs) > 0 && Number(events) > 0 && Number(bytes) > 0 && plugin === 'runs',
      ),
  )
  assert.equal(
    ((await server.kernel.commands().get('verify')!.run({})) as { told: unknown[] }).told,
    [],
  )
  await server.stop()
})

test('a run under way is never touched, whatever else is kept', async () => {
  const { server, run, get, until, figure } = await served({
    RUNS_EVENTS_BYTES_MAX_PER_ORG: '1',
    MODELS_URL: 'scripted:?tokens=150&interval_ms=10',
  })
  const account = await server.account()
  const { run_id: long } = (
    await server.call('POST', '/chat', { token: account.token, body: { message: 'long' } })
  ).body as { run_id: string }
  const short = await run(account, '[[tokens=3]] short')
  await until(
    'the other was forgotten',
    async () =>
      (await get(short)).compacted === true &&
      (await get(short)).keptBytes === undefined &&
      (await figure('runs_events_trimmed_total{reason="size"}')) > 0,
  )
  const running = await get(long)
  if (running.phase === 'placed') assert.is(running.keptBytes, undefined)
  const events = await readEvents(await server.stream(account.token, long))
  assert.is(events.at(-1)!.event, 'done')
  await server.stop()
})

test('without a bound nothing goes for its size; a wrong count is corrected first', async () => {
  const free = await served()
  const account = await free.server.account()
  const id = await free.run(account)
  await free.until('it is small', async () => (await free.counted(account)) > 0)
  await new Promise(resolve => setTimeout(resolve, 200))
  assert.ok(((await free.get(id)).keptBytes ?? 0) > 0)
  assert.is(await free.figure('runs_events_freed_bytes_total{reason="size"}'), 0)
  await free.server.stop()

  const bounded = await served({ RUNS_EVENTS_BYTES_MAX_PER_ORG: '1000000' })
  const other = await bounded.server.account()
  const kept = await bounded.run(other)
  await bounded.until('it is small', async () => (await bounded.counted(other)) > 0)
  await bounded.storage.update(EventBytes, other.org_id, { set: { bytes: 5_000_000 } })
  await bounded.until(
    'it was counted anew',
    async () => (await bounded.counted(other)) === (await bounded.get(kept)).keptBytes,
  )
  assert.is(await bounded.figure('runs_events_freed_bytes_total{reason="size"}'), 0)
  await bounded.server.stop()
})

test('what goes by its age leaves the count', async () => {
  const { server, run, counted, get, until, figure } = await served({ RUNS_EVENTS_KEPT_MS: '400' })
  const account = await server.account()
  const id = await run(account)
  await until('it is small', async () => (await counted(account)) > 0)
  await until(
    'it is forgotten',
    async () => (await figure('runs_events_trimmed_total{reason="age"}')) > 0,
  )
  await until('and left the count', async () => (await counted(account)) === 0)
  assert.is((await get(id)).keptSince, undefined)
  assert.ok((await figure('runs_events_freed_bytes_total{reason="age"}')) > 0)
  await server.stop()
})

test("forks keep no events: the count is the original's, before and after it goes", async () => {
  const { server, storage, run, counted, get, until, figure } = await served({
    RUNS_EVENTS_KEPT_MS: '1500',
    RUNS_KEYS_KEPT_MS: '1500',
  })
  const account = await server.account()
  const id = await run(account)
  await until('it is small', async () => (await get(id)).keptBytes !== undefined)
  const whole = (await get(id)).keptBytes!
  const { sessionId } = await get(id)
  for (let n = 0; n < 5; n++)
    assert.is(
      (
        await server.call('POST', `/sessions/${sessionId}/branch`, {
          token: account.token,
          body: {},
        })
      ).status,
      201,
    )
  const runs = async () =>
    (await storage.find(Runs, { where: { orgId: account.org_id }, limit: 100 })).items
  const forks = (await runs()).filter(one => one.id !== id)
  assert.equal(
    forks.map(({ source, keptBytes }) => [source, keptBytes]),
    Array.from({ length: 5 }, () => [id, undefined]),
    'the texts stay where they are',
  )
  assert.is(await counted(account), whole)
  const most = whole
  await until('it is forgotten', async () => (await get(id)).keptSince === undefined)
  await until('and has left the count', async () => (await counted(account)) === 0)
  const freed = await figure('runs_events_freed_bytes_total{reason="age"}')
  assert.ok(freed <= most, `${freed} bytes were told as freed, of ${most}`)
  await server.stop()
})

test.after(endServers)
test.run()
