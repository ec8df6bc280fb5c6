import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { eventlogKit } from '../../test/conformance/eventlog.ts'
import { refuses } from '../../test/conformance/runner.ts'
import { scopedEventlog } from '../../test/conformance/scoped.ts'
import { sqlitePlace } from '../../test/support/databases/sqlite.ts'
import { systemClock } from '../clock/system.ts'

eventlogKit(test, 'sqlite, beside the storage', {
  survives: true,
  place: async () => {
    const place = await sqlitePlace(systemClock())
    return {
      clean: place.clean,
      async open() {
        const storage = await place.open()
        const log = await place.openLog(storage)
        return {
          log,
          async close() {
            await log.close()
            await storage.close()
          },
        }
      },
    }
  },
})

eventlogKit(test, 'sqlite, of a tenant', {
  survives: true,
  place: async () => {
    const place = await sqlitePlace(systemClock())
    return {
      clean: place.clean,
      async open() {
        const log = scopedEventlog(await place.openLog())
        return { log, close: log.close }
      },
    }
  },
})

eventlogKit(test, 'sqlite, in a file of its own', {
  survives: true,
  place: async () => {
    const place = await sqlitePlace(systemClock())
    return {
      clean: place.clean,
      async open() {
        const log = await place.openLog()
        return { log, close: log.close }
      },
    }
  },
})

test('storage and log on one URL commit together; on two they do not meet', async () => {
  const place = await sqlitePlace(systemClock())
  const storage = await place.open()
  const together = await place.openLog(storage)
  const apart = await place.openLog(storage, `${place.path}.events`)
  await together.append('a', [{ type: 'x', data: null }])
  // The storage's promise covers the log's write, so nothing is pending when it is kept.
  await storage.durable()
  assert.equal(await apart.bounds('a'), { first: 1, last: 0 })
  await apart.close()
  await together.close()
  await refuses('UNAVAILABLE', () => together.read('a'))
  await storage.ping()
  await storage.close()
  await place.clean()
})

test('no event reaches a follower before it is on disk', async () => {
  const place = await sqlitePlace(systemClock())
  const storage = await place.open()
  const log = await place.openLog(storage)
  const iterator = log.follow('a', { signal: new AbortController().signal })[Symbol.asyncIterator]()
  const first = iterator.next()
  await log.ping()
  for (let n = 1; n <= 20; n++) {
    await log.append('a', [{ type: 'x', data: n }])
    const durable = log.durable().then(() => 'durable')
    const seen = (n === 1 ? first : iterator.next()).then(() => 'seen')
    assert.is(await Promise.race([durable, seen]), 'durable')
    await Promise.all([durable, seen])
  }
  await iterator.return!()
  await storage.close()
  await place.clean()
})

test.run()
