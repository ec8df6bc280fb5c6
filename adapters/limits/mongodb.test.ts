// The kit against the server that MONGODB_URL names, and two processes that count together though
// their clocks differ.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { limitsKit } from '../../test/conformance/limits.ts'
import { freshDatabase, mongoUrl } from '../../test/support/databases/mongodb.ts'
import { manualClock } from '../clock/manual.ts'
import { mongoLimits } from './mongodb.ts'

if (mongoUrl === undefined) test.skip('mongodb: the kit (MONGODB_URL is not set)', () => undefined)
else {
  limitsKit(test, 'mongodb', {
    async open() {
      const clock = manualClock()
      const { connect, clean } = freshDatabase()
      return {
        limits: await mongoLimits({
          connection: await connect(),
          clock,
          serverTime: async () => clock.now(),
        }),
        pass: ms => clock.advance(ms),
        clean,
      }
    },
  })

  test('mongodb: two processes count as one, whatever their own clocks say', async () => {
    const { connect, clean } = freshDatabase()
    const hour = 3_600_000
    const rate = { count: 10, perMs: hour }
    const limits = await Promise.all(
      [0, 5 * 60_000, -2 * hour].map(async ahead =>
        mongoLimits({
          connection: await connect(),
          clock: { monotonic: () => performance.now() + ahead + 3 * hour },
        }),
      ),
    )
    try {
      const waits = await Promise.all(
        Array.from({ length: 30 }, (_, i) => limits[i % 3]!.take('runs', 'ann', rate)),
      )
      assert.is(waits.filter(ms => ms === 0).length, 10)
      for (const ms of waits.filter(wait => wait > 0))
        assert.ok(ms > hour - 60_000 && ms <= hour, `told to wait ${ms} ms`)
      await limits[1]!.reset('runs', 'ann')
      assert.is(await limits[2]!.take('runs', 'ann', rate), 0)
    } finally {
      for (const one of limits) await one.close()
      await clean()
    }
  })
}
test.run()
