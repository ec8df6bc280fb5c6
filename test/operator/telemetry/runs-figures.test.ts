// The figures of runs: their starts, their ends, their readers and their takeovers.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { endServers, readEvents, startServer } from '../../conformance/plugin/server.ts'
import { startEngine } from '../../support/engine.ts'
import { says } from '../../support/scripted-model.ts'
import { sum, until } from './figures.ts'

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

test.after(endServers)
test.run()
