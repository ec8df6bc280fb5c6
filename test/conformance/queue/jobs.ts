// Which jobs are taken, when, and how many at a time.
import assert from 'node:assert/strict'
import type { Job } from '#ports/queue.ts'
import { ends, latch, real, until, within, type On } from './common.ts'

export function jobs(on: On): void {
  on('a job runs at once where somebody takes its name, with its data', [], async queue => {
    const seen: Job[] = []
    queue.define('a', async job => void seen.push(job))
    const jobId = await queue.enqueue('a', { x: ['y', null] })
    await ends(queue, jobId, 'done')
    assert.deepEqual(
      seen.map(({ id, name, data, attempt }) => ({ id, name, data, attempt })),
      [{ id: jobId, name: 'a', data: { x: ['y', null] }, attempt: 1 }],
    )
    assert.equal(seen[0]!.signal.aborted, false)
    assert.equal(await queue.state('unknown'), undefined)
  })
  on('a job that nobody takes waits, however long', ['time'], async (queue, { clock }) => {
    const waiting = await queue.enqueue('nobody', null)
    await clock.advance(120_000)
    assert.equal(await queue.state(waiting), 'waiting')
  })
  on(
    'jobs that waited are taken in the order of their time when a taker comes',
    ['time'],
    async (queue, { clock }) => {
      const seen: unknown[] = []
      await queue.enqueue('a', 3, { runAt: clock.now() - 1000 })
      await queue.enqueue('a', 2, { runAt: clock.now() - 2000 })
      await queue.enqueue('a', 1, { runAt: clock.now() - 3000 })
      queue.define('a', async ({ data }) => void seen.push(data), { concurrency: 1 })
      await until(() => seen.length === 3, 'three jobs')
      assert.deepEqual(seen, [1, 2, 3])
    },
  )
  on('runAt is not before its time and not long after', ['time'], async (queue, { clock }) => {
    const at: number[] = []
    queue.define('a', async () => void at.push(clock.now()))
    await clock.advance(10)
    const runAt = clock.now() + 90_000
    const id = await queue.enqueue('a', null, { runAt })
    await clock.advance(89_999)
    await real(20)
    assert.equal(await queue.state(id), 'waiting')
    await within(clock, 2000, () => at.length === 1, 'the job', 100)
    assert.ok(at[0]! >= runAt && at[0]! <= runAt + 2000)
  })
  on('no more than `concurrency` at a time, and all of them in the end', [], async queue => {
    let [now, most, done] = [0, 0, 0]
    queue.define(
      'a',
      async () => {
        most = Math.max(most, ++now)
        await real(2)
        now--
        done++
      },
      { concurrency: 3 },
    )
    await Promise.all(Array.from({ length: 30 }, (_, n) => queue.enqueue('a', n)))
    await until(() => done === 30, 'thirty jobs')
    assert.equal(most, 3)
  })
  on(
    'the function that define answers stops taking, and waits for what is under way',
    [],
    async queue => {
      const gate = latch()
      let [begun, done] = [false, 0]
      const stop = queue.define('a', async () => {
        begun = true
        await gate.opened
        done++
      })
      const first = await queue.enqueue('a', 1)
      // The store may say so before the worker does, and what has not begun is not waited for.
      await until(() => begun, 'its beginning')
      let stopped = false
      const stopping = stop().then(() => void (stopped = true))
      const second = await queue.enqueue('a', 2)
      await real(10)
      assert.equal(stopped, false)
      gate.open()
      await stopping
      assert.deepEqual(
        [done, await queue.state(first), await queue.state(second)],
        [1, 'done', 'waiting'],
      )
      queue.define('a', async () => void done++)
      await ends(queue, second, 'done')
    },
  )
  on(
    'two queues share the work, and each job runs once',
    ['another', 'time'],
    async (queue, { clock, another }) => {
      const other = (await another()).queue
      const seen = new Map<unknown, number>()
      const handler = async ({ data }: Job) => {
        await real(1)
        seen.set(data, (seen.get(data) ?? 0) + 1)
      }
      queue.define('a', handler)
      other.define('a', handler)
      for (let n = 0; n < 40; n++) await (n % 2 ? queue : other).enqueue('a', n)
      await within(clock, 120_000, () => seen.size === 40, 'forty jobs', 1000)
      assert.deepEqual(new Set(seen.values()), new Set([1]))
      await other.close()
    },
  )
}

export function dedupe(on: On): void {
  on(
    'a second job with the key is not added while the first waits or runs, and is after it ended',
    [],
    async queue => {
      const gate = latch()
      const first = await queue.enqueue('a', 1, { dedupeKey: 'k' })
      assert.equal(await queue.enqueue('a', 2, { dedupeKey: 'k' }), first)
      assert.notEqual(await queue.enqueue('b', 2, { dedupeKey: 'k' }), first)
      queue.define('a', () => gate.opened)
      await ends(queue, first, 'running')
      assert.equal(await queue.enqueue('a', 3, { dedupeKey: 'k' }), first)
      gate.open()
      await ends(queue, first, 'done')
      const next = await queue.enqueue('a', 4, { dedupeKey: 'k' })
      assert.notEqual(next, first)
      await ends(queue, next, 'done')
      const many = await Promise.all(
        Array.from({ length: 20 }, () => queue.enqueue('c', 1, { dedupeKey: 'k' })),
      )
      assert.equal(new Set(many).size, 1)
    },
  )
}
