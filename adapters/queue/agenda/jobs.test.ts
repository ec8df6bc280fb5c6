// What the kit cannot ask of jobs, since Agenda goes by real time.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { real } from '../../../test/conformance/queue/common.ts'
import { ends, onAgenda, until } from '../../../test/support/databases/agenda.ts'
import { mongoUrl } from '../../../test/support/databases/mongodb.ts'

const on = onAgenda(test)

if (mongoUrl === undefined) test.skip('agenda: jobs (MONGODB_URL is not set)', () => undefined)
else {
  on(
    'jobs that waited are taken in the order of their time, not before it, with data that ' +
      'no document could hold',
    async ({ open }) => {
      const queue = await open()
      const seen: [unknown, number][] = []
      const odd = { $set: { 'a.b': [null, 1e300] }, '': 'x', constructor: '\u0000' }
      const runAt = Date.now() + 1500
      await queue.enqueue('a', 'late', { runAt })
      await queue.enqueue('a', 2, { runAt: Date.now() - 1000 })
      await queue.enqueue('a', odd, { runAt: Date.now() - 2000 })
      queue.define('a', async ({ data }) => void seen.push([data, Date.now()]), { concurrency: 1 })
      await until(() => seen.length === 3, 'three jobs')
      assert.equal(
        seen.map(([data]) => data),
        [odd, 2, 'late'],
      )
      assert.ok(seen[2]![1] >= runAt)
    },
  )
  on(
    'a job that fails is tried again and then kept as failed; one that succeeds at its ' +
      'second try is done',
    async ({ open, jobs }) => {
      const queue = await open()
      const attempts: number[] = []
      queue.define(
        'a',
        async ({ attempt }) => {
          attempts.push(attempt)
          throw new Error('no')
        },
        { attemptsMax: 3, backoffMs: 10 },
      )
      queue.define(
        'b',
        async ({ attempt }) => {
          if (attempt === 1) throw new Error('not yet')
        },
        { backoffMs: 10 },
      )
      queue.define(
        'c',
        async () => {
          throw new Error('later')
        },
        { backoffMs: 3_000_000 },
      )
      const [a, b, c] = (await Promise.all(
        ['a', 'b', 'c'].map(name => queue.enqueue(name, null, { dedupeKey: 'k' })),
      )) as [string, string, string]
      await ends(queue, a, 'failed')
      await ends(queue, b, 'done')
      assert.equal(attempts, [1, 2, 3])
      assert.not.equal(await queue.enqueue('a', null, { dedupeKey: 'k' }), a)
      const row = (await jobs.findOne({ name: 'c' }))!
      const pause = (row['nextRunAt'] as Date).getTime() - (row['lastRunAt'] as Date).getTime()
      assert.equal(
        [row['_id'].toString(), row['state'], row['attempt'], row['failReason']],
        [c, 'waiting', 1, 'later'],
      )
      assert.ok(pause >= 1_500_000 && pause <= 3_100_000, 'half of the pause at least')
    },
  )
  on(
    'what has ended is taken out by the server, as long after as with any queue',
    async ({ open, jobs }) => {
      const queue = await open()
      queue.define('a', async () => {})
      await ends(queue, await queue.enqueue('a', null), 'done')
      await queue.cancel(await queue.enqueue('nobody', null))
      await queue.enqueue('nobody', null)
      const kept = (await jobs.find().toArray()).map(({ state, expiresAt }) => [
        state,
        expiresAt && Math.round(((expiresAt as Date).getTime() - Date.now()) / 86_400_000),
      ])
      assert.equal(kept.sort(), [
        ['cancelled', 7],
        ['done', 7],
        ['waiting', undefined],
      ])
      assert.ok(
        (await jobs.indexes()).some(
          ({ key, expireAfterSeconds }) => key['expiresAt'] === 1 && expireAfterSeconds === 0,
        ),
      )
    },
  )
  on(
    'a job is cancelled however soon after it was seen to run, and a cancelled one never begins',
    async ({ open, jobs }) => {
      const queue = await open()
      queue.define(
        'a',
        ({ signal }) =>
          new Promise((_, reject) =>
            signal.addEventListener('abort', () => reject(new Error('stopped'))),
          ),
        { concurrency: 10 },
      )
      const states = await Promise.all(
        Array.from({ length: 30 }, async (_, n) => {
          const id = await queue.enqueue('a', n)
          while ((await queue.state(id)) === 'waiting') await real(1)
          await queue.cancel(id)
          await ends(queue, id, 'cancelled')
          return queue.state(id)
        }),
      )
      assert.equal(
        [new Set(states), await jobs.countDocuments({ state: 'running' })],
        [new Set(['cancelled']), 0],
      )
    },
  )
}

test.run()
