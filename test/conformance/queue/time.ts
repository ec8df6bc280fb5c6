// Leases that run out, and schedules that come round.
import assert from 'node:assert/strict'
import { ends, latch, real, until, within, type On } from './common.ts'
import { refuses } from '../runner.ts'

export function leases(on: On): void {
  on(
    'a long job keeps its lease by beating, and nobody else takes it',
    ['another', 'time'],
    async (queue, { clock, another }) => {
      const gate = latch()
      let starts = 0
      const handler = () => (starts++, gate.opened)
      queue.define('a', handler, { leaseMs: 9000 })
      const id = await queue.enqueue('a', null)
      await ends(queue, id, 'running')
      const other = (await another()).queue
      other.define('a', handler, { leaseMs: 9000 })
      try {
        for (let n = 0; n < 30; n++) {
          await clock.advance(1000)
          // A heartbeat takes a way to the store and back. These take the same way after it.
          for (let ways = 0; ways < 3; ways++) await queue.state(id)
        }
        assert.equal(starts, 1)
      } finally {
        gate.open()
      }
      await ends(queue, id, 'done')
      await other.close()
    },
  )
  on(
    'the job of a worker that died is taken over when its lease ran out',
    ['another', 'crash', 'time'],
    async (queue, { clock, another }) => {
      const { queue: other, die } = await another()
      const gate = latch()
      const attempts: number[] = []
      let signal: AbortSignal | undefined
      other.define(
        'a',
        async job => {
          signal = job.signal
          await gate.opened
        },
        { leaseMs: 9000 },
      )
      const id = await other.enqueue('a', null)
      await ends(queue, id, 'running')
      die()
      queue.define('a', async ({ attempt }) => void attempts.push(attempt), { leaseMs: 9000 })
      const passed = await within(
        clock,
        60_000,
        async () => (await queue.state(id)) === 'done',
        'taken over',
      )
      assert.ok(passed >= 8000, String(passed))
      assert.deepEqual(attempts, [2])
      await within(clock, 20_000, () => signal!.aborted, 'the loser is told')
      gate.open()
    },
  )
}

export function schedules(on: On): void {
  const minute = 60_000
  on('a schedule fires at its times in its zone', ['time'], async (queue, { clock }) => {
    const at: number[] = []
    queue.define('a', async () => void at.push(clock.now()))
    const { nextAt } = await queue.schedule('k', {
      name: 'a',
      data: 'x',
      cron: '40 5 * * *',
      timezone: 'Asia/Kolkata',
    })
    assert.equal(new Date(nextAt).toISOString(), '2030-01-01T00:10:00.000Z')
    // The clock stops soon after it, for the answer's way through a thread may outlast its steps.
    await within(clock, 11 * minute, () => at.length === 1, 'the morning', minute)
    assert.ok(at[0]! >= nextAt && at[0]! < nextAt + 3 * minute)
  })
  on(
    'times that were missed fire once, even when the schedule is stated again at the start',
    ['another', 'time'],
    async (queue, { clock, another }) => {
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
    },
  )
  on('two queues fire each time once', ['another', 'time'], async (queue, { clock, another }) => {
    const other = (await another()).queue
    let fired = 0
    for (const one of [queue, other]) one.define('a', async () => void fired++)
    for (const one of [queue, other])
      await one.schedule('k', { name: 'a', data: null, cron: '* * * * *', timezone: 'UTC' })
    await within(clock, 10 * minute, () => fired >= 5, 'five minutes', 15_000)
    assert.ok(clock.now() - Date.UTC(2030, 0, 1) >= 5 * minute)
    await other.close()
  })
  on('the same key replaces; unscheduling ends it', ['time'], async (queue, { clock }) => {
    const seen: unknown[] = []
    queue.define('a', async ({ data }) => void seen.push(data))
    const one = { name: 'a', data: 1, cron: '*/10 * * * *', timezone: 'UTC' }
    await queue.schedule('k', one)
    assert.equal(
      (await queue.schedule('k', { ...one, data: 2, cron: '*/1 * * * *' })).nextAt,
      clock.now() + minute,
    )
    await within(clock, 2 * minute, () => seen.length === 1, 'the minute', 10_000)
    assert.equal(await queue.unschedule('k'), true)
    assert.equal(await queue.unschedule('k'), false)
    await clock.advance(3 * minute)
    await real(20)
    assert.deepEqual(seen, [2])
  })
  on('an expression or a zone that is none is refused by name', [], async queue => {
    const good = { name: 'a', data: null, cron: '* * * * *', timezone: 'UTC' }
    for (const cron of [
      '',
      '* * * *',
      '* * * * * *',
      '61 * * * *',
      'x * * * *',
      '@daily',
      '0 0 31 2 *',
      '? * * * *',
    ])
      assert.match(
        await refuses('INVALID_FIELD', () => queue.schedule('k', { ...good, cron })),
        /^cron:/,
        cron,
      )
    for (const timezone of ['', 'Mars/Olympus', 'UTC; x'])
      assert.match(
        await refuses('INVALID_FIELD', () => queue.schedule('k', { ...good, timezone })),
        /^timezone:/,
      )
  })
}
