// Ended runs: their logs are compacted without a reader noticing, then removed up to their ends.
// Their keys are freed later.
import fc from 'fast-check'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { manualClock } from '#adapters/clock/manual.ts'
import { systemClock } from '#adapters/clock/system.ts'
import { memoryEventlog } from '#adapters/eventlog/memory.ts'
import { memoryStorage } from '#adapters/storage/memory.ts'
import type { Eventlog, LoggedEvent, NewEvent } from '#ports/eventlog.ts'
import type { Collection, Query, StorageEngine } from '#ports/storage.ts'
import { readEvents, startServer, type SseEvent } from '../../../test/conformance/plugin/server.ts'
import { compact, shown, spanOf } from '../journal/compact.ts'
import { stagesOf } from './retention.ts'

type Text = { text: string; step: number; attempt: number }
const isText = (type: string) => type === 'token' || type === 'reasoning'
/** What a reader sees: the text of each attempt, and every other event with its seq. */
const told = (events: readonly { seq: number; type: string; data: unknown }[]) => {
  const texts = new Map<string, string>()
  const others: unknown[] = []
  for (const { seq, type, data } of events) {
    const { text, step, attempt } = data as Text
    const key = `${type} ${step} ${attempt}`
    if (isText(type)) texts.set(key, (texts.get(key) ?? '') + text)
    else others.push([seq, type, data])
  }
  return { texts: Object.fromEntries([...texts].filter(([, text]) => text !== '')), others }
}
const all = async (log: Eventlog) => {
  const events: LoggedEvent[] = []
  for (
    let page = await log.read('a', { limit: 50 });
    page.length > 0;
    page = await log.read('a', { after: page.at(-1)!.seq, limit: 50 })
  )
    events.push(...page)
  return events
}

const fragment = fc.record({
  type: fc.constantFrom('token', 'token', 'token', 'reasoning'),
  data: fc.record({
    text: fc.string({ unit: 'binary', maxLength: 4 }),
    step: fc.integer({ min: 0, max: 1 }),
    attempt: fc.constantFrom(1, 1, 2),
  }),
})
const other = fc.constantFrom<NewEvent>(
  { type: 'checkpoint@1', hidden: true, data: { step: 0, attempt: 1, response: 'r', at: 1 } },
  { type: 'checkpoint@1', hidden: true, data: { step: 0, attempt: 1, response: 'r', at: 2 } },
  { type: 'took@1', hidden: true, data: { epoch: 1 } },
  { type: 'superseded', data: { step: 0, attempt: 1, keep: 0, reason: 'failed' } },
  { type: 'done', data: { status: 'done' } },
)
const logs = fc.array(
  fc.oneof({ weight: 5, arbitrary: fragment }, { weight: 2, arbitrary: other }),
  { minLength: 1, maxLength: 60 },
)

test('whoever comes back with any cursor reads exactly the rest, before and after', async () => {
  await fc.assert(
    fc.asyncProperty(logs, async events => {
      const log = memoryEventlog()
      await log.append('a', events)
      const before = await all(log)
      for (let times = 0; times < 2; times++) {
        const counts = await compact(log, 'a')
        const after = await all(log)
        assert.is(counts.kept, after.length)
        assert.is(after.at(-1)!.seq, before.at(-1)!.seq)
        let at = 0
        for (const event of after)
          assert.is(event.seq - spanOf(event), at, 'every seq is accounted for'), (at = event.seq)
        for (let cursor = 0; cursor <= at; cursor++)
          assert.equal(
            told(shown(await log.read('a', { after: cursor }), cursor)),
            told(before.filter(({ seq, hidden }) => !hidden && seq > cursor)),
            `after ${cursor}`,
          )
        const fragments = before.filter(({ type }) => isText(type))
        const runs = new Set(after.filter(({ type }) => isText(type)))
        assert.ok(runs.size <= fragments.length)
      }
    }),
    { numRuns: 150 },
  )
})

test('a long answer becomes few bounded records; a repeated rewrite repairs a crash', async () => {
  const log = memoryEventlog()
  const piece = 'x'.repeat(1000)
  for (let n = 0; n < 700; n++)
    await log.append('a', [{ type: 'token', data: { text: piece, step: 0, attempt: 1 } }])
  await log.append('a', [{ type: 'done', data: { status: 'done' } }])
  const before = told(await all(log))
  let calls = 0
  const dying: Eventlog = {
    ...log,
    rewrite: async (...args) => {
      if (++calls === 3) throw new Error('the process is gone')
      await log.rewrite(...args)
    },
  }
  await compact(dying, 'a').then(
    () => assert.unreachable(),
    () => undefined,
  )
  assert.equal(told(shown(await all(log), 0)), before)
  const { events, kept } = await compact(log, 'a')
  const after = await all(log)
  assert.equal(told(shown(after, 0)), before)
  assert.ok(
    kept <= 6 && after.every(event => JSON.stringify(event).length < 210_000),
    `${kept} records`,
  )
  assert.ok(events > kept)
})

test('each stage counts from the end of the run, and a key outlives what it answers with', () => {
  const stages = (compact_after_ms: number, events_kept_ms: number, keys_kept_ms: number) =>
    Object.values(stagesOf({ endedAt: 1000 }, { compact_after_ms, events_kept_ms, keys_kept_ms }))
  assert.equal(stages(5, 10, 20), [1005, 1010, 1020])
  assert.equal(stages(5, 20, 10), [1005, 1020, 1020])
  assert.equal(stages(0, 0, 10), [1000, Infinity, Infinity])
  assert.equal(stages(0, 10, 0), [1000, 1010, Infinity])
})

type Started = { run_id: string; session_id: string; resumed: boolean }
/** Time passes by milliseconds while somebody reads, by seconds while something is awaited. */
async function served(env: Record<string, string>) {
  const clock = manualClock()
  const turn = async (ms: number) => {
    await clock.leap(ms)
    await new Promise(resolve => setTimeout(resolve, 1))
  }
  const server = await startServer({
    given: { clock },
    env: {
      MODELS_URL: 'scripted:?tokens=40&interval_ms=0',
      RUNS_RETENTION_MS: '50',
      LIMITS_RUNS_PER_SECOND: '1000',
      LIMITS_RUNS_BURST: '1000',
      ...env,
    },
  })
  const { token } = await server.account()
  const figure = async (name: string) =>
    Number(
      new RegExp(`^${name.replace(/[{}]/g, '\\$&')} (\\d+)$`, 'm').exec(
        (await server.call('GET', '/metrics')).text,
      )?.[1],
    )
  return {
    server,
    token,
    figure,
    start: async (message: string) =>
      (await server.call('POST', '/chat', { token, body: { message, idempotency_key: 'one' } }))
        .body as Started,
    async read(runId: string, after = 0): Promise<SseEvent[]> {
      const headers: Record<string, string> = after ? { 'last-event-id': String(after) } : {}
      let events: SseEvent[] | undefined
      const reading = server.stream(token, runId, headers).then(async response => {
        events = await readEvents(response)
      })
      while (!events) await Promise.race([reading, turn(1)])
      return events
    },
    async until(holds: () => Promise<boolean>) {
      for (let tries = 0; !(await holds()); tries++) {
        assert.ok(tries < 200, 'it never came')
        await turn(1000)
      }
    },
    verify: async () =>
      ((await server.kernel.commands().get('verify')!.run({})) as { told: unknown[] }).told,
  }
}
const wire = (events: readonly SseEvent[]) =>
  told(events.map(({ id, event, data }) => ({ seq: id, type: event, data })))

test('over the API nobody notices that a log was made small', async () => {
  const { server, token, figure, start, read, until, verify } = await served({
    RUNS_COMPACT_AFTER_MS: '60000',
  })
  const { run_id: id, session_id: session } = await start('hello')
  const before = await read(id)
  assert.ok(before.length > 40)
  await until(async () => (await figure('runs_compacted_total')) > 0)
  const after = await read(id)
  assert.ok(after.length < 8, `${after.length} events`)
  for (const { id: cursor } of before)
    assert.equal(
      wire(await read(id, cursor)),
      wire(before.filter(event => event.id > cursor)),
      `after ${cursor}`,
    )
  assert.ok(
    after.every(({ data }) => !('lengths' in data)),
    'what the log keeps for itself is not shown',
  )
  const recent = (await server.call('GET', `/sessions/${session}`, { token })).body as {
    events: LoggedEvent[]
  }
  assert.equal(told(recent.events), wire(after))
  assert.ok(
    (await figure('runs_compacted_bytes_after_total')) * 3 <
      (await figure('runs_compacted_bytes_before_total')),
  )
  assert.equal(await verify(), [])
  assert.equal((await start('hello')).run_id, id, 'the key still answers it')
  await server.stop()
})

test("after the events' time a reader is told what is gone, and how the run ended", async () => {
  const { server, token, figure, start, read, until, verify } = await served({
    RUNS_COMPACT_AFTER_MS: '0',
    RUNS_EVENTS_KEPT_MS: '60000',
    RUNS_KEYS_KEPT_MS: '30000',
  })
  const { run_id: id, session_id: session } = await start('hello')
  const before = await read(id)
  await until(async () => (await figure('runs_events_trimmed_total{reason="age"}')) > 0)
  const [gone, ...rest] = await read(id)
  const ends = before.slice(-2)
  assert.equal(rest, ends)
  assert.is(gone!.event, 'gone')
  assert.ok((gone!.data['first'] as number) <= ends[0]!.id)
  assert.equal(await read(id, before[5]!.id), [gone, ...ends], 'a cursor into what is gone')
  assert.equal(await read(id, ends[0]!.id), [ends[1]], 'a cursor behind it')
  assert.equal(await verify(), [])
  const { items } = (await server.call('GET', `/sessions/${session}/messages`, { token })).body as {
    items: { content: string }[]
  }
  assert.is(
    items[1]!.content,
    Object.values(wire(before).texts)[0],
    'the conversation keeps its answer',
  )
  await until(async () => {
    const again = await start('hello')
    return again.resumed === false && again.run_id !== id
  })
  await server.stop()
})

test('a query for a range of one field reads in the order of that field', async () => {
  const engine = memoryStorage(systemClock())
  const walks = new Set<string>()
  const seen = new Set<string>()
  const find: StorageEngine['find'] = (collection: Collection, query: Query = {}) => {
    for (const [field, condition] of Object.entries(query.where ?? {})) {
      if (
        typeof condition !== 'object' ||
        field === 'id' ||
        !['gt', 'gte', 'lt', 'lte'].some(name => name in condition)
      )
        continue
      seen.add(`${collection.name}.${field}`)
      if (query.orderBy?.[0] !== field) walks.add(`${collection.name}.${field}`)
    }
    return engine.find(collection, query) as never
  }
  const server = await startServer({
    given: { storage: { ...engine, find } },
    env: {
      RUNS_RETENTION_MS: '50',
      RUNS_SWEEP_MS: '50',
      RUNS_COMPACT_AFTER_MS: '0',
      RUNS_EVENTS_BYTES_MAX_PER_ORG: '1',
    },
  })
  const { token } = await server.account()
  const { body } = await server.call('POST', '/chat', { token, body: { message: 'hello' } })
  await readEvents(await server.stream(token, (body as { run_id: string }).run_id))
  while (
    !['runs.tidy', 'runs.due', 'runs.keptSince', 'event_bytes.bytes'].every(one => seen.has(one))
  )
    await new Promise(resolve => setTimeout(resolve, 20))
  await server.stop()
  assert.equal([...walks], [])
})

test.run()
