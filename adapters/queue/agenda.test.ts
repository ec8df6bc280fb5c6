// The kit against the server that MONGODB_URL names; what it cannot ask, since Agenda goes by real
// time; and processes that share the work, die and close.
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import type { Queue } from '#ports/queue.ts'
import { freshDatabase, mongoUrl } from '../../test/support/databases/mongodb.ts'
import { opening } from '../../test/conformance/opening.ts'
import { startProxy } from '../../test/support/databases/proxy.ts'
import { real } from '../../test/conformance/queue/common.ts'
import { queueKit } from '../../test/conformance/queue.ts'
import { manualClock } from '../clock/manual.ts'
import { systemClock } from '../clock/system.ts'
import { nextTime } from './lib/cron.ts'
import adapter, { agendaQueue } from './agenda.ts'

const clock = systemClock()
const everyMinute = { name: 'a', data: { n: 1 }, cron: '* * * * *', timezone: 'UTC' }
const children = new Set<ChildProcess>()
/** Patient: what is not told at once is looked for every second. */
async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  for (let tries = 0; tries < 400; tries++) {
    if (await condition()) return
    await real(20)
  }
  throw new Error(`waited in vain: ${what}`)
}
const ends = (queue: Queue, id: string, state: string) =>
  until(async () => (await queue.state(id)) === state, `${id} ${state}`)

/**
 * A database of its own, queues on it here, workers on it as processes, and its jobs as they lie
 * there.
 */
async function place() {
  const { url, connect, clean } = freshDatabase()
  const looking = await connect()
  const opened: Queue[] = []
  const started: ChildProcess[] = []
  return {
    url,
    jobs: looking.db.collection('agendaJobs'),
    async open() {
      const queue = await agendaQueue({ connection: await connect(), clock, log: () => undefined })
      opened.push(queue)
      return queue
    },
    async worker(leaseMs = 30_000) {
      const child = spawn(
        process.execPath,
        [
          '--disable-warning=ExperimentalWarning',
          resolve(import.meta.dirname, '../../test/support/children/queue-child.ts'),
          `agenda:${url.href}`,
          String(leaseMs),
        ],
        { stdio: ['ignore', 'pipe', 'inherit'] },
      )
      const lines: string[] = []
      const ended = once(child, 'exit')
      children.add(child.once('exit', () => children.delete(child)))
      started.push(child)
      createInterface({ input: child.stdout! }).on('line', line => lines.push(line))
      await until(() => lines.includes('ready'), 'a worker')
      return { lines, kill: (signal: NodeJS.Signals) => (child.kill(signal), ended) }
    },
    async clean() {
      for (const queue of opened) await queue.close()
      for (const child of started) child.kill('SIGKILL')
      await looking.close()
      await clean()
    },
  }
}
const on = (title: string, run: (at: Awaited<ReturnType<typeof place>>) => Promise<void>) =>
  test(`agenda: ${title}`, async () => {
    const at = await place()
    try {
      await run(at)
    } finally {
      await at.clean()
    }
  })

if (mongoUrl === undefined) test.skip('agenda: the kit (MONGODB_URL is not set)', () => undefined)
else {
  const why = 'Agenda goes by real time; asked below'
  const unasked: string[] = []
  queueKit(test, 'agenda', {
    lacks: { time: why, crash: why },
    unasked: check => void unasked.push(check),
    place: async () => {
      const { connect, clean } = freshDatabase()
      const stands = manualClock()
      const open = async () =>
        agendaQueue({ connection: await connect(), clock: stands, log: () => undefined })
      return {
        clock: stands,
        open,
        another: async () => ({ queue: await open(), die: () => assert.unreachable() }),
        clean,
      }
    },
  })
  test('agenda: what the kit leaves out is twelve checks about time', () =>
    assert.is(unasked.length, 12, unasked.join('\n')))

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
  on(
    'while the server is away a sentence says so; when it is back, work goes on without ' +
      'another start',
    async ({ open, url }) => {
      const proxy = await startProxy(() => [Number(url.port)], url.hostname)
      const through = new URL(url)
      const seen: unknown[] = []
      const direct = await open()
      through.port = String(proxy.port)
      for (const [name, value] of Object.entries({
        directConnection: 'true',
        serverSelectionTimeoutMS: '300',
      }))
        through.searchParams.set(name, value)
      const queue = await adapter.open(opening(`agenda:${through.href}`, { clock }))
      await using ending = new AsyncDisposableStack()
      ending.defer(() => proxy.close())
      ending.defer(() => queue.close())
      queue.define('a', async ({ data }) => void seen.push(data))
      await ends(direct, await direct.enqueue('a', 1), 'done')
      proxy.refuse()
      for (const call of [
        () => queue.enqueue('a', 2),
        () => queue.ping(),
        () => queue.state('0'.repeat(24)),
      ])
        assert.ok(hasCode(await call().catch((error: unknown) => error), 'UNAVAILABLE'))
      const meanwhile = await direct.enqueue('a', 3)
      await real(1500)
      assert.is(await direct.state(meanwhile), 'waiting')
      proxy.heal()
      await ends(direct, meanwhile, 'done')
      await ends(direct, await queue.enqueue('a', 4), 'done')
      assert.equal(seen, [1, 3, 4])
    },
  )
  on(
    'a schedule fires once for all processes, once for all times that were missed, and moves on',
    async ({ open, worker, jobs }) => {
      const [queue, ...workers] = [await open(), await worker(), await worker()]
      const before = Date.now()
      const { nextAt } = await queue.schedule('k', everyMinute)
      const fired = () =>
        workers.flatMap(({ lines }) => lines.filter(line => line === 'ran 1')).length
      assert.ok([before, Date.now()].some(time => nextAt === nextTime('* * * * *', 'UTC', time)))
      const missed = new Date(Date.now() - 600_000)
      const due = async () =>
        ((await jobs.findOne({ name: '#schedule' }))!['nextRunAt'] as Date).getTime()
      await jobs.updateOne({ name: '#schedule' }, { $set: { nextRunAt: missed } })
      assert.is((await queue.schedule('k', everyMinute)).nextAt, missed.getTime())
      await until(async () => (await due()) > Date.now(), 'it moves on')
      await until(() => fired() > 0, 'it fires')
      // What has just fired is there again, as after a crash before it moved on.
      await jobs.updateOne({ name: '#schedule' }, { $set: { nextRunAt: missed } })
      await until(async () => (await due()) > Date.now(), 'it moves on again')
      assert.equal([fired(), await jobs.countDocuments({ name: 'a' })], [1, 1])
    },
  )
  on('the same key replaces times, zone and data; unscheduling ends it', async ({ open, jobs }) => {
    const queue = await open()
    const night = { ...everyMinute, cron: '40 5 * * *', timezone: 'Asia/Kolkata', data: { n: 2 } }
    await queue.schedule('k', everyMinute)
    const { nextAt } = await queue.schedule('k', night)
    const rows = await jobs.find({ name: '#schedule' }).toArray()
    assert.match(new Date(nextAt).toISOString(), /T00:10:00\.000Z$/)
    assert.equal(
      rows.map(({ nextRunAt, repeatInterval, repeatTimezone, data }) => [
        (nextRunAt as Date).getTime(),
        repeatInterval,
        repeatTimezone,
        JSON.parse(data as string).data,
      ]),
      [[nextAt, '40 5 * * *', 'Asia/Kolkata', { n: 2 }]],
    )
    assert.equal(
      [await queue.unschedule('k'), await queue.unschedule('k'), await jobs.countDocuments()],
      [true, false, 0],
    )
  })
}

test('agenda: where no server answers, and where its URL is none, a sentence says so', async () => {
  const failure = (url: string) =>
    adapter.open(opening(url, { clock })).then(
      () => undefined,
      (error: Error) => error,
    )
  const away = await failure(
    'agenda:mongodb://somebody:hidden-word@127.0.0.1:1/x?serverSelectionTimeoutMS=200',
  )
  assert.ok(hasCode(away, 'UNAVAILABLE'))
  assert.is(away.message, 'The database is not available: no server that takes writes answers.')
  for (const url of ['agenda:', 'agenda://host/db', 'agenda:sqlite:x'])
    assert.match(
      (await failure(url))!.message,
      /^QUEUE_URL: is written as agenda:mongodb:\/\/host\/database/,
    )
})

test.after(() => children.forEach(child => child.kill('SIGKILL')))
test.run()
