import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { onAgenda, until } from '../../../test/support/databases/agenda.ts'
import { mongoUrl } from '../../../test/support/databases/mongodb.ts'
import { nextTime } from '../lib/cron.ts'

const on = onAgenda(test)
const everyMinute = { name: 'a', data: { n: 1 }, cron: '* * * * *', timezone: 'UTC' }

if (mongoUrl === undefined) test.skip('agenda: schedules (MONGODB_URL is not set)', () => undefined)
else {
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

test.run()
