// What every queue promises. Time is the manual clock's; only the way of an answer through threads and sockets is waited for.
import assert from 'node:assert/strict'
import type { ManualClock } from '#adapters/clock/manual.ts'
import { hasCode } from '#contracts/faults.ts'
import type { Job, Queue } from '#ports/queue.ts'
import { refuses, type Test } from './runner.ts'

/** `another`: a second queue on the same jobs, as another process has it; `die` ends it as a crash does: it answers nothing and beats no more. */
type Place = { readonly clock: ManualClock; open(): Promise<Queue>; another(): Promise<{ readonly queue: Queue; die(): void }>; clean(): Promise<void> }
type Kit = { place: () => Promise<Place> }
type On = (title: string, run: (queue: Queue, place: Place) => Promise<void>) => void

const real = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
/** Waits in real time, without moving the clock. */
async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    if (await condition()) return
    await real(tries < 50 ? 1 : 5)
  }
  assert.fail(`waited in vain: ${what}`)
}
/** Moves the time on in steps until it happens; answers how far. */
async function within(clock: ManualClock, ms: number, condition: () => boolean | Promise<boolean>, what: string, step = 250): Promise<number> {
  for (let passed = 0; passed <= ms; passed += step) {
    for (let tries = 0; tries < 2; tries++) {
      if (await condition()) return passed
      await real(1)
    }
    await clock.advance(step)
  }
  return assert.fail(`waited in vain: ${what}`)
}
const ends = (queue: Queue, id: string, state: string) => until(async () => (await queue.state(id)) === state, `${id} ${state}`)
function latch(): { readonly opened: Promise<void>; open(): void } {
  const { promise, resolve } = Promise.withResolvers<void>()
  return { opened: promise, open: resolve }
}

export function queueKit(test: Test, name: string, { place }: Kit): void {
  const on: On = (title, run) =>
    test(`${name}: ${title}`, async () => {
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
  dedupe(on)
  retries(on)
  leases(on)
  schedules(on)
  cancels(on)
  states(on)
}

function jobs(on: On): void {
  on('a job runs at once where somebody takes its name, with its data', async (queue, { clock }) => {
    const seen: Job[] = []
    queue.define('a', async (job) => void seen.push(job))
    const id = await queue.enqueue('a', { x: ['y', null] })
    await ends(queue, id, 'done')
    assert.deepEqual(seen.map(({ id, name, data, attempt }) => ({ id, name, data, attempt })), [{ id, name: 'a', data: { x: ['y', null] }, attempt: 1 }])
    assert.equal(seen[0]!.signal.aborted, false)
    const waiting = await queue.enqueue('nobody', null)
    await clock.advance(120_000)
    assert.equal(await queue.state(waiting), 'waiting')
    assert.equal(await queue.state('unknown'), undefined)
  })
  on('jobs that waited are taken in the order of their time when a taker comes', async (queue, { clock }) => {
    const seen: unknown[] = []
    await queue.enqueue('a', 3, { runAt: clock.now() - 1000 })
    await queue.enqueue('a', 2, { runAt: clock.now() - 2000 })
    await queue.enqueue('a', 1, { runAt: clock.now() - 3000 })
    queue.define('a', async ({ data }) => void seen.push(data), { concurrency: 1 })
    await until(() => seen.length === 3, 'three jobs')
    assert.deepEqual(seen, [1, 2, 3])
  })
  on('runAt is not before its time and not long after', async (queue, { clock }) => {
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
  on('no more than `concurrency` at a time, and all of them in the end', async (queue) => {
    let [now, most, done] = [0, 0, 0]
    queue.define('a', async () => {
      most = Math.max(most, ++now)
      await real(2)
      now--
      done++
    }, { concurrency: 3 })
    await Promise.all(Array.from({ length: 30 }, (_, n) => queue.enqueue('a', n)))
    await until(() => done === 30, 'thirty jobs')
    assert.equal(most, 3)
  })
  on('the function that define answers stops taking, and waits for what is under way', async (queue) => {
    const gate = latch()
    let done = 0
    const stop = queue.define('a', async () => {
      await gate.opened
      done++
    })
    const first = await queue.enqueue('a', 1)
    await ends(queue, first, 'running')
    let stopped = false
    const stopping = stop().then(() => void (stopped = true))
    const second = await queue.enqueue('a', 2)
    await real(10)
    assert.equal(stopped, false)
    gate.open()
    await stopping
    assert.deepEqual([done, await queue.state(first), await queue.state(second)], [1, 'done', 'waiting'])
    queue.define('a', async () => void done++)
    await ends(queue, second, 'done')
  })
  on('two queues share the work, and each job runs once', async (queue, { clock, another }) => {
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
  })
}

function dedupe(on: On): void {
  on('a second job with the key is not added while the first waits or runs, and is after it ended', async (queue) => {
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
    const many = await Promise.all(Array.from({ length: 20 }, () => queue.enqueue('c', 1, { dedupeKey: 'k' })))
    assert.equal(new Set(many).size, 1)
  })
}

function retries(on: On): void {
  on('a job that fails is tried again after pauses that grow, then kept as failed', async (queue, { clock }) => {
    const at: number[] = []
    const attempts: number[] = []
    queue.define('a', async ({ attempt }) => {
      at.push(clock.now())
      attempts.push(attempt)
      throw new Error('no')
    }, { attemptsMax: 4, backoffMs: 10_000 })
    const id = await queue.enqueue('a', null, { dedupeKey: 'k' })
    await within(clock, 100_000, async () => (await queue.state(id)) === 'failed', 'failed', 500)
    assert.deepEqual(attempts, [1, 2, 3, 4])
    for (const [n, longest] of [10_000, 20_000, 40_000].entries()) {
      const pause = at[n + 1]! - at[n]!
      assert.ok(pause >= longest / 2 && pause <= longest + 1000, `${pause} of ${longest}`)
    }
    assert.notEqual(await queue.enqueue('a', null, { dedupeKey: 'k' }), id)
  })
  on('a job that succeeds at its second try is done', async (queue, { clock }) => {
    queue.define('a', async ({ attempt }) => {
      if (attempt === 1) throw new Error('not yet')
    })
    const id = await queue.enqueue('a', null)
    await within(clock, 10_000, async () => (await queue.state(id)) === 'done', 'done')
  })
}

function leases(on: On): void {
  on('a long job keeps its lease by beating, and nobody else takes it', async (queue, { clock, another }) => {
    const gate = latch()
    let starts = 0
    const handler = () => (starts++, gate.opened)
    queue.define('a', handler, { leaseMs: 9000 })
    const id = await queue.enqueue('a', null)
    await ends(queue, id, 'running')
    const other = (await another()).queue
    other.define('a', handler, { leaseMs: 9000 })
    for (let n = 0; n < 30; n++) {
      await clock.advance(1000)
      await real(3)
    }
    assert.equal(starts, 1)
    gate.open()
    await ends(queue, id, 'done')
    await other.close()
  })
  on('the job of a worker that died is taken over when its lease ran out', async (queue, { clock, another }) => {
    const { queue: other, die } = await another()
    const gate = latch()
    const attempts: number[] = []
    let signal: AbortSignal | undefined
    other.define('a', async (job) => {
      signal = job.signal
      await gate.opened
    }, { leaseMs: 9000 })
    const id = await other.enqueue('a', null)
    await ends(queue, id, 'running')
    die()
    queue.define('a', async ({ attempt }) => void attempts.push(attempt), { leaseMs: 9000 })
    const passed = await within(clock, 60_000, async () => (await queue.state(id)) === 'done', 'taken over')
    assert.ok(passed >= 8000, String(passed))
    assert.deepEqual(attempts, [2])
    await within(clock, 20_000, () => signal!.aborted, 'the loser is told')
    gate.open()
  })
}

function schedules(on: On): void {
  const minute = 60_000
  on('a schedule fires at its times in its zone', async (queue, { clock }) => {
    const at: number[] = []
    queue.define('a', async () => void at.push(clock.now()))
    const { nextAt } = await queue.schedule('k', { name: 'a', data: 'x', cron: '40 5 * * *', timezone: 'Asia/Kolkata' })
    assert.equal(new Date(nextAt).toISOString(), '2030-01-01T00:10:00.000Z')
    await within(clock, 15 * minute, () => at.length === 1, 'the morning', minute)
    // The answer's way through a thread may outlast a step of the clock.
    assert.ok(at[0]! >= nextAt && at[0]! < nextAt + 3 * minute)
  })
  on('times that were missed fire once, even when the schedule is stated again at the start', async (queue, { clock, another }) => {
    const timetable = { name: 'a', data: null, cron: '*/5 * * * *', timezone: 'UTC' }
    let fired = 0
    const first = (await another()).queue
    const { nextAt } = await first.schedule('k', timetable)
    await first.close()
    await queue.close()
    await clock.advance(62 * minute)
    const later = (await another()).queue
    later.define('a', async () => void fired++)
    assert.ok((await later.schedule('k', timetable)).nextAt >= nextAt)
    await until(() => fired > 0, 'the missed one')
    await real(20)
    assert.equal(fired, 1)
    await within(clock, 5 * minute, () => fired === 2, 'the next one', 10_000)
    await later.close()
  })
  on('two queues fire each time once', async (queue, { clock, another }) => {
    const other = (await another()).queue
    let fired = 0
    for (const one of [queue, other]) one.define('a', async () => void fired++)
    for (const one of [queue, other]) await one.schedule('k', { name: 'a', data: null, cron: '* * * * *', timezone: 'UTC' })
    await within(clock, 10 * minute, () => fired >= 5, 'five minutes', 15_000)
    assert.ok(clock.now() - Date.UTC(2030, 0, 1) >= 5 * minute)
    await other.close()
  })
  on('the same key replaces; unscheduling ends it', async (queue, { clock }) => {
    const seen: unknown[] = []
    queue.define('a', async ({ data }) => void seen.push(data))
    const one = { name: 'a', data: 1, cron: '*/10 * * * *', timezone: 'UTC' }
    await queue.schedule('k', one)
    assert.equal((await queue.schedule('k', { ...one, data: 2, cron: '*/1 * * * *' })).nextAt, clock.now() + minute)
    await within(clock, 2 * minute, () => seen.length === 1, 'the minute', 10_000)
    assert.equal(await queue.unschedule('k'), true)
    assert.equal(await queue.unschedule('k'), false)
    await clock.advance(3 * minute)
    await real(20)
    assert.deepEqual(seen, [2])
  })
  on('an expression or a zone that is none is refused by name', async (queue) => {
    const good = { name: 'a', data: null, cron: '* * * * *', timezone: 'UTC' }
    for (const cron of ['', '* * * *', '* * * * * *', '61 * * * *', 'x * * * *', '@daily', '0 0 31 2 *', '? * * * *'])
      assert.match(await refuses('INVALID_FIELD', () => queue.schedule('k', { ...good, cron })), /^cron:/, cron)
    for (const timezone of ['', 'Mars/Olympus', 'UTC; x']) assert.match(await refuses('INVALID_FIELD', () => queue.schedule('k', { ...good, timezone })), /^timezone:/)
  })
}

function cancels(on: On): void {
  on('a waiting job is cancelled, a running one is told, an ended one stays', async (queue) => {
    const waiting = await queue.enqueue('nobody', null, { dedupeKey: 'k' })
    assert.equal(await queue.cancel(waiting), true)
    assert.equal(await queue.state(waiting), 'cancelled')
    assert.equal(await queue.cancel(waiting), false)
    assert.notEqual(await queue.enqueue('nobody', null, { dedupeKey: 'k' }), waiting)
    queue.define('a', ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('stopped')))))
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
  on('closing tells the jobs under way, puts them back untried, and refuses every later call', async (queue, { another }) => {
    const { queue: closing } = await another()
    closing.define('a', ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('closing')))), { attemptsMax: 1 })
    const id = await closing.enqueue('a', null)
    await ends(queue, id, 'running')
    await Promise.all([closing.close(), closing.close()])
    assert.equal(await queue.state(id), 'waiting')
    let attempt = 0
    queue.define('a', async (job) => void (attempt = job.attempt))
    await ends(queue, id, 'done')
    assert.equal(attempt, 1)
    const timetable = { name: 'a', data: null, cron: '* * * * *', timezone: 'UTC' }
    for (const call of [() => closing.enqueue('a', null), () => closing.schedule('k', timetable), () => closing.unschedule('k'), () => closing.cancel(id), () => closing.state(id), () => closing.ping()]) await refuses('UNAVAILABLE', call)
    assert.throws(() => closing.define('a', async () => {}), (error) => hasCode(error, 'UNAVAILABLE'))
  })
}
