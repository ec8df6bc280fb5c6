// What every queue promises. Time is the manual clock's; only the way of an answer through threads
// and sockets is waited for.
import assert from 'node:assert/strict'
import { hasCode } from '#contracts/faults.ts'
import type { Job } from '#ports/queue.ts'
import { ends, latch, real, until, within, type Kit, type On } from './queue/common.ts'
import { leases, schedules } from './queue/time.ts'
import { asking, refuses, type Test } from './runner.ts'

export function queueKit(test: Test, name: string, { place, ...lacking }: Kit): void {
  const ask = asking(test, lacking)
  const on: On = (title, needs, run) =>
    ask(`${name}: ${title}`, needs, async () => {
      const at = await place()
      const queue = await at.open()
      try {
        await run(queue, at)
      } finally {
        await queue.close()
        await at.clean()
      }
    })
  jobs(on)
  depths(on)
  dedupe(on)
  retries(on)
  leases(on)
  schedules(on)
  cancels(on)
  states(on)
}

function jobs(on: On): void {
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

function depths(on: On): void {
  on(
    'how many wait and run is told by name: not those whose time is yet to come, nor what ' +
      'has ended',
    [],
    async (queue, { clock }) => {
      const gate = latch()
      const names = ['a', 'b', 'nobody']
      const none = { waiting: 0, running: 0 }
      assert.deepEqual(await queue.depth(names), { a: none, b: none, nobody: none })
      for (let n = 0; n < 3; n++) await queue.enqueue('nobody', n)
      const cancelled = await queue.enqueue('nobody', 3)
      const failed = await queue.enqueue('c', 4)
      await queue.cancel(cancelled)
      await queue.enqueue('a', 5, { runAt: clock.now() + 3_600_000 })
      queue.define(
        'c',
        async () => {
          throw new Error('no')
        },
        { attemptsMax: 1 },
      )
      await ends(queue, failed, 'failed')
      queue.define('b', () => gate.opened, { concurrency: 2 })
      const taken = await Promise.all(Array.from({ length: 5 }, (_, n) => queue.enqueue('b', n)))
      await until(async () => (await queue.depth(['b']))['b']!.running === 2, 'two under way')
      assert.deepEqual(await queue.depth([...names, 'c']), {
        a: none,
        b: { waiting: 3, running: 2 },
        nobody: { waiting: 3, running: 0 },
        c: none,
      })
      assert.deepEqual(
        [await queue.depth(['nobody']), await queue.depth([])],
        [{ nobody: { waiting: 3, running: 0 } }, {}],
      )
      gate.open()
      for (const id of taken) await ends(queue, id, 'done')
      assert.deepEqual(await queue.depth(['b']), { b: none })
    },
  )
}

function dedupe(on: On): void {
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

function retries(on: On): void {
  on(
    'a job that fails is tried again after pauses that grow, then kept as failed',
    ['time'],
    async (queue, { clock }) => {
      const at: number[] = []
      const attempts: number[] = []
      queue.define(
        'a',
        async ({ attempt }) => {
          at.push(clock.now())
          attempts.push(attempt)
          throw new Error('no')
        },
        { attemptsMax: 4, backoffMs: 10_000 },
      )
      const id = await queue.enqueue('a', null, { dedupeKey: 'k' })
      await within(clock, 100_000, async () => (await queue.state(id)) === 'failed', 'failed', 500)
      assert.deepEqual(attempts, [1, 2, 3, 4])
      for (const [n, longest] of [10_000, 20_000, 40_000].entries()) {
        const pause = at[n + 1]! - at[n]!
        assert.ok(pause >= longest / 2 && pause <= longest + 1000, `${pause} of ${longest}`)
      }
      assert.notEqual(await queue.enqueue('a', null, { dedupeKey: 'k' }), id)
    },
  )
  on('a job that succeeds at its second try is done', ['time'], async (queue, { clock }) => {
    queue.define('a', async ({ attempt }) => {
      if (attempt === 1) throw new Error('not yet')
    })
    const id = await queue.enqueue('a', null)
    await within(clock, 10_000, async () => (await queue.state(id)) === 'done', 'done')
  })
}

function cancels(on: On): void {
  on('a waiting job is cancelled, a running one is told, an ended one stays', [], async queue => {
    const waiting = await queue.enqueue('nobody', null, { dedupeKey: 'k' })
    assert.equal(await queue.cancel(waiting), true)
    assert.equal(await queue.state(waiting), 'cancelled')
    assert.equal(await queue.cancel(waiting), false)
    assert.notEqual(await queue.enqueue('nobody', null, { dedupeKey: 'k' }), waiting)
    queue.define(
      'a',
      ({ signal }) =>
        new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(new Error('stopped'))),
        ),
    )
    const running = await queue.enqueue('a', null)
    await ends(queue, running, 'running')
    assert.equal(await queue.cancel(running), false)
    await ends(queue, running, 'cancelled')
    queue.define('b', async () => {})
    const done = await queue.enqueue('b', null)
    await ends(queue, done, 'done')
    assert.equal(await queue.cancel(done), false)
    assert.equal(await queue.state(done), 'done')
    assert.equal(await queue.cancel('unknown'), false)
  })
}

function states(on: On): void {
  on(
    'closing tells the jobs under way, and puts them back untried',
    ['another'],
    async (queue, { another }) => {
      const { queue: closing } = await another()
      closing.define(
        'a',
        ({ signal }) =>
          new Promise((_, reject) =>
            signal.addEventListener('abort', () => reject(new Error('closing'))),
          ),
        { attemptsMax: 1 },
      )
      const id = await closing.enqueue('a', null)
      await ends(queue, id, 'running')
      await Promise.all([closing.close(), closing.close()])
      assert.equal(await queue.state(id), 'waiting')
      let attempt = 0
      queue.define('a', async job => void (attempt = job.attempt))
      await ends(queue, id, 'done')
      assert.equal(attempt, 1)
    },
  )
  on('closed, it refuses every call; closing twice is allowed', [], async queue => {
    await queue.ping()
    const id = await queue.enqueue('a', null)
    await Promise.all([queue.close(), queue.close()])
    const timetable = { name: 'a', data: null, cron: '* * * * *', timezone: 'UTC' }
    for (const call of [
      () => queue.enqueue('a', null),
      () => queue.schedule('k', timetable),
      () => queue.unschedule('k'),
      () => queue.cancel(id),
      () => queue.state(id),
      () => queue.depth(['a']),
      () => queue.ping(),
    ])
      await refuses('UNAVAILABLE', call)
    assert.throws(
      () => queue.define('a', async () => {}),
      error => hasCode(error, 'UNAVAILABLE'),
    )
  })
}
