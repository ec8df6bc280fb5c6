// Every figure that a server offers is explained to its operators, and moves when it should.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { StorageEngine } from '#ports/storage.ts'
import { definePlugin, fault } from '../../../kernel/index.ts'
import { lasting, startEngine } from '../../support/engine.ts'
import { says } from '../../support/scripted-model.ts'
import {
  endServers,
  readEvents,
  startServer,
  type TestServer,
} from '../../conformance/plugin/server.ts'

const home = resolve(import.meta.dirname, '../../..')
const page = readFileSync(join(home, 'OPERATIONS.md'), 'utf8')
const text = async (server: Pick<TestServer, 'call'>) => (await server.call('GET', '/metrics')).text
/** The sum of the samples whose line begins so; labels in any order are part of it. */
const sum = async (server: Pick<TestServer, 'call'>, name: string, ...labels: string[]) =>
  (await text(server))
    .split('\n')
    .filter(
      line =>
        (line.startsWith(`${name} `) || line.startsWith(`${name}{`)) &&
        labels.every(label => line.includes(label)),
    )
    .reduce((all, line) => all + Number(line.split(' ').at(-1)), 0)
async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await holds()); tries++) {
    assert.ok(tries < 500, `it never came: ${what}`)
    await new Promise(fulfil => setTimeout(fulfil, 10))
  }
}

test('a server offers exactly the figures that OPERATIONS.md explains, by type', async () => {
  const server = await startServer()
  const offered = [...(await text(server)).matchAll(/^# TYPE (\S+) (\S+)$/gm)]
    .map(([, name, type]) => `${name} ${type}`)
    .sort()
  const explained = [
    ...page.matchAll(/^\| `([a-z0-9_]+)(?:\{[a-z, ]+\})?` \| (counter|gauge|histogram) \|/gm),
  ]
    .map(([, name, type]) => `${name} ${type}`)
    .sort()
  await server.stop()
  assert.ok(offered.length > 40)
  assert.equal(explained, offered)
})

test('names follow conventions: counters end with _total, units are s and bytes', async () => {
  const server = await startServer()
  const offered = [...(await text(server)).matchAll(/^# TYPE (\S+) (\S+)$/gm)]
  await server.stop()
  for (const [, name, type] of offered) {
    if (!name!.startsWith('nodejs_')) assert.is(name!.endsWith('_total'), type === 'counter', name)
    assert.not.match(name!, /_(ms|milliseconds|kb|mb|kib|mib)\b/)
  }
})

test("a run is counted by its start, its end, its first event and its readers' waits", async () => {
  const server = await startServer({ env: { MODELS_URL: 'scripted:?tokens=20&interval_ms=5' } })
  const { token } = await server.account()
  const run = async (message: string) =>
    readEvents(
      await server.stream(
        token,
        (
          (await server.call('POST', '/chat', { token, body: { message } })).body as {
            run_id: string
          }
        ).run_id,
      ),
    )
  const done = await run('hello')
  const failed = await run('[[refuse]] [[fail_after=0]]')
  assert.equal([done.at(-1)!.event, failed.at(-1)!.event], ['done', 'error'])
  await until('both ends', async () => (await sum(server, 'runs_ended_total')) === 2)
  assert.equal(
    [
      await sum(server, 'runs_started_total'),
      await sum(server, 'runs_ended_total', 'status="done"'),
      await sum(server, 'runs_ended_total', 'status="failed"'),
    ],
    [2, 1, 1],
  )
  assert.ok((await sum(server, 'runs_first_event_seconds_count')) >= 1)
  assert.ok((await sum(server, 'runs_first_event_seconds_sum')) < 5)
  assert.ok((await sum(server, 'runs_stream_lag_seconds_count')) >= 3, 'deliveries were timed')
  assert.ok(
    (await sum(server, 'runs_stream_lag_seconds_sum')) /
      (await sum(server, 'runs_stream_lag_seconds_count')) <
      1,
  )
  await server.stop()
})

test('an open stream and a driven run are seen while they are there', async () => {
  const server = await startServer({ env: { MODELS_URL: 'scripted:?tokens=1000&interval_ms=20' } })
  const { token } = await server.account()
  const { run_id: id } = (await server.call('POST', '/chat', { token, body: { message: 'long' } }))
    .body as { run_id: string }
  const stream = await server.stream(token, id)
  const reading = readEvents(stream)
  assert.equal(
    [
      await sum(server, 'http_open_streams'),
      await sum(server, 'runs_active', 'state="active"'),
      await sum(server, 'runs_organisations'),
    ],
    [1, 1, 1],
  )
  await server.call('POST', `/runs/${id}/cancel`, { token })
  await reading
  await until(
    'the end',
    async () => (await sum(server, 'runs_ended_total', 'status="cancelled"')) === 1,
  )
  assert.equal(
    [await sum(server, 'http_open_streams'), await sum(server, 'runs_active', 'state="active"')],
    [0, 0],
  )
  await server.stop()
})

test('an adapter is timed by port and method, and its failures by their codes', async () => {
  const server = await startServer()
  const { token } = await server.account()
  const of = ['port="storage"', 'method="find"']
  const timed = async () => sum(server, 'adapter_call_duration_seconds_count', ...of)
  const before = await timed()
  await server.call('GET', '/sessions', { token })
  assert.ok((await timed()) > before)
  assert.is(await sum(server, 'adapter_call_errors_total', 'code="INSUFFICIENT_CREDITS"'), 0)
  const poor = await server.account(0)
  assert.is(
    (await server.call('POST', '/chat', { token: poor.token, body: { message: 'hello' } })).status,
    402,
  )
  assert.is(
    await sum(
      server,
      'adapter_call_errors_total',
      'port="billing"',
      'method="hold"',
      'code="INSUFFICIENT_CREDITS"',
    ),
    1,
  )
  await server.stop()
})

test('a model is timed until its first batch, and counted when it fails later', async () => {
  const server = await startServer({ env: { RUNS_TRIES_MAX: '1' } })
  const { token } = await server.account()
  await readEvents(
    await server.stream(
      token,
      (
        (await server.call('POST', '/chat', { token, body: { message: '[[fail_after=2]]' } }))
          .body as { run_id: string }
      ).run_id,
    ),
  )
  assert.is(
    await sum(server, 'adapter_call_duration_seconds_count', 'port="models"', 'method="stream"'),
    1,
  )
  assert.is(
    await sum(
      server,
      'adapter_call_errors_total',
      'port="models"',
      'method="stream"',
      'code="MODEL_FAILED"',
    ),
    1,
  )
  await server.stop()
})

test('a lease taken from a silent driver is counted, one given back is not', async () => {
  const engine = await startEngine(() => says('hello'), {
    env: { RUNS_SWEEP_MS: '50', RUNS_LEASE_MS: '300' },
  })
  const given = await engine.left([], {})
  await engine.closed(given.id)
  assert.is(await engine.gauge('runs_takeovers_total'), 0)
  const silent = await engine.left([], { owner: 'somebody/else' })
  await engine.closed(silent.id)
  assert.is(await engine.gauge('runs_takeovers_total'), 1)
  await engine.stop()
})

test('a plugin is counted when a generation of it serves, and when it is refused', async () => {
  const server = await startServer()
  const folder = join(server.dataDir, 'guest')
  const write = (body: string) => writeFileSync(join(folder, 'plugin.js'), body)
  mkdirSync(folder)
  const whole =
    "import { definePlugin } from 'agent-platform/plugin'\nexport default definePlugin({ " +
    "name: 'guest', version: '1.0.0', kernel: '^1.0.0' })\n"
  write(whole)
  await server.pluginRegistry.load(folder)
  write(`${whole}// again`)
  await server.pluginRegistry.reload('guest')
  assert.equal(
    [
      await sum(server, 'plugin_loads_total', 'plugin="guest"'),
      await sum(server, 'plugin_load_failures_total'),
    ],
    [2, 0],
  )
  for (const broken of ['this is no program', whole.replace('^1.0.0', '^9.0.0')]) {
    write(broken)
    await server.pluginRegistry.reload('guest').then(
      () => assert.unreachable(),
      () => undefined,
    )
  }
  assert.equal(
    [
      await sum(server, 'plugin_loads_total', 'plugin="guest"'),
      await sum(server, 'plugin_load_failures_total'),
    ],
    [2, 2],
  )
  await server.stop()
})

const working = definePlugin({
  name: 'working',
  version: '1.0.0',
  kernel: '^1.0.0',
  jobs: {
    'working.job': {
      run: async ({ data }) => {
        if (data === 'fail') throw fault('UNAVAILABLE', { what: 'it', why: 'so' })
      },
      options: { attemptsMax: 1 },
    },
  },
})
test('a job is counted by how its try ended', async () => {
  const server = await startServer({
    plugins: [
      working,
      ...(await (await import('../../../kernel/loading/sources.ts')).loadPlugins()),
    ],
  })
  const queue = server.engine<{ enqueue(name: string, data: unknown): Promise<string> }>('queue')
  for (const data of ['go', 'go', 'fail']) await queue.enqueue('working.job', data)
  await until(
    'three tries',
    async () => (await sum(server, 'jobs_ended_total', 'job="working.job"')) === 3,
  )
  assert.equal(
    [
      await sum(server, 'jobs_ended_total', 'job="working.job"', 'result="done"'),
      await sum(server, 'jobs_ended_total', 'job="working.job"', 'result="failed"'),
      await sum(server, 'jobs_running'),
    ],
    [2, 1, 0],
  )
  await server.stop()
})

test('jobs that wait are counted by name, once; a failed queue spares other figures', async () => {
  const { promise: gate, resolve: open } = Promise.withResolvers<void>()
  const others = await (await import('../../../kernel/loading/sources.ts')).loadPlugins()
  const shared = lasting({ exclusive: false })
  const busy = definePlugin({
    name: 'busy',
    version: '1.0.0',
    kernel: '^1.0.0',
    jobs: { 'busy.job': { run: () => gate, options: { concurrency: 1 } } },
  })
  let isAway = false
  const storage: StorageEngine = {
    ...shared.storage,
    count: (...asked) =>
      isAway
        ? Promise.reject(fault('UNAVAILABLE', { what: 'it', why: 'so' }))
        : shared.storage.count(...asked),
  }
  const given = { ...shared, storage }
  const [first, second] = [
    await startServer({ plugins: [busy, ...others], given }),
    await startServer({ plugins: [busy, ...others], given }),
  ]
  const queue = first.engine<{ enqueue(name: string, data: unknown): Promise<string> }>('queue')
  for (let n = 0; n < 5; n++) await queue.enqueue('busy.job', n)
  await until(
    'one at each',
    async () =>
      (await sum(first, 'jobs_running', 'job="busy.job"')) +
        (await sum(second, 'jobs_running', 'job="busy.job"')) >=
      1,
  )
  const exposition = await text(second)
  const lines = exposition.split('\n').filter(line => line.startsWith('queue_jobs{job="busy.job"'))
  assert.is(lines.length, 2)
  assert.is(await sum(second, 'queue_jobs', 'job="busy.job"'), 5)
  assert.ok((await sum(second, 'queue_jobs', 'job="busy.job"', 'state="waiting"')) >= 3)
  assert.is(exposition.split('\n').filter(line => line === '# TYPE queue_jobs gauge').length, 1)
  isAway = true
  const third = await startServer({ plugins: [busy, ...others], given })
  assert.equal(
    [
      await sum(third, 'queue_jobs'),
      (await sum(third, 'adapter_call_errors_total', 'port="queue"', 'method="depth"')) > 0,
      (await third.call('GET', '/metrics')).status,
    ],
    [0, true, 200],
  )
  open()
  for (const server of [first, second, third]) await server.stop()
})

test.after(endServers)
test.run()
