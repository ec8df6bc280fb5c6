// The figures of jobs: those that ended, and those that wait.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { StorageEngine } from '#ports/storage.ts'
import { definePlugin, fault } from '../../../kernel/index.ts'
import { loadPlugins } from '../../../kernel/loading/sources.ts'
import { endServers, startServer } from '../../conformance/plugin/server.ts'
import { lasting } from '../../support/engine.ts'
import { sum, text, until } from './figures.ts'

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
    plugins: [working, ...(await loadPlugins())],
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
  const others = await loadPlugins()
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
