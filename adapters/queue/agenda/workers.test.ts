// Processes that share the work, lose their lease, die and close.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { real } from '../../../test/conformance/queue/common.ts'
import { ends, onAgenda, until } from '../../../test/support/databases/agenda.ts'
import { mongoUrl } from '../../../test/support/databases/mongodb.ts'

const on = onAgenda(test)

if (mongoUrl === undefined) test.skip('agenda: workers (MONGODB_URL is not set)', () => undefined)
else {
  on(
    'a long job keeps its lease by beating; one whose lease is lost is told, and what it ' +
      'writes counts for nothing',
    async ({ open, jobs }) => {
      const [queue, other] = [await open(), await open()]
      let [starts, told] = [0, 0]
      for (const one of [queue, other])
        one.define(
          'a',
          ({ signal }) => (
            starts++, new Promise(done => signal.addEventListener('abort', () => done(void told++)))
          ),
          { leaseMs: 2400 },
        )
      const id = await queue.enqueue('a', null)
      await ends(queue, id, 'running')
      // Two leases, and some beats.
      await real(5500)
      assert.is(starts, 1)
      await jobs.updateOne(
        { name: 'a' },
        { $set: { lastModifiedBy: 'somebody else', lockedAt: new Date(Date.now() + 60_000) } },
      )
      await until(() => told === 1, 'the loser is told')
      await real(50)
      assert.is(await queue.state(id), 'running')
    },
  )
  on('two processes share forty jobs, and each runs once', async ({ open, worker }) => {
    const [queue, ...workers] = [await open(), await worker(), await worker()]
    const ids = await Promise.all(Array.from({ length: 40 }, (_, n) => queue.enqueue('a', { n })))
    for (const id of ids) await ends(queue, id, 'done')
    const ran = workers.map(({ lines }) =>
      lines.filter(line => line.startsWith('ran ')).map(line => Number(line.slice(4))),
    )
    assert.equal(
      ran.flat().sort((a, b) => a - b),
      Array.from({ length: 40 }, (_, n) => n),
    )
    assert.ok(
      ran.every(some => some.length > 0),
      'both worked',
    )
  })
  on(
    'the job of a process that was killed is taken over after its lease, and that try counts',
    async ({ open, worker }) => {
      const queue = await open()
      const { lines, kill } = await worker(1500)
      const attempts: number[] = []
      const id = await queue.enqueue('a', { n: 1, hold: true })
      await until(() => lines.includes('holds 1'), 'it runs')
      await kill('SIGKILL')
      assert.is(await queue.state(id), 'running')
      queue.define('a', async ({ attempt }) => void attempts.push(attempt), { leaseMs: 1500 })
      await ends(queue, id, 'done')
      assert.equal(attempts, [2])
    },
  )
  on(
    'a job that takes its workers with it is failed after its last try',
    async ({ open, jobs }) => {
      const queue = await open()
      const id = await queue.enqueue('a', null)
      await jobs.updateOne(
        { name: 'a' },
        { $set: { state: 'running', attempt: 2, lockedAt: new Date(0), lastModifiedBy: 'dead' } },
      )
      queue.define('a', async () => assert.unreachable(), { attemptsMax: 2, leaseMs: 1000 })
      await ends(queue, id, 'failed')
    },
  )
  on(
    'a process that is told to end gives its job back, and that try does not count',
    async ({ open, worker }) => {
      const queue = await open()
      const { lines, kill } = await worker(600_000)
      const attempts: number[] = []
      const id = await queue.enqueue('a', { n: 1, hold: true })
      await until(() => lines.includes('holds 1'), 'it runs')
      const [code] = (await kill('SIGTERM')) as [number]
      assert.equal([code, lines.at(-1), await queue.state(id)], [0, 'closed', 'waiting'])
      queue.define('a', async ({ attempt }) => void attempts.push(attempt))
      await ends(queue, id, 'done')
      assert.equal(attempts, [1])
    },
  )
}

test.run()
