import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { StorageEngine } from '#ports/storage.ts'
import { crashable } from '../../test/conformance/check/crashable.ts'
import { queueKit } from '../../test/conformance/queue.ts'
import { sqlitePlace } from '../../test/support/databases/sqlite.ts'
import { manualClock, type ManualClock } from '../clock/manual.ts'
import { memoryStorage } from '../storage/memory.ts'
import { queueOn } from './storage.ts'

const place = (clock: ManualClock, storage: StorageEngine, clean: () => Promise<void>) => ({
  clock,
  open: () => queueOn(storage, clock, () => {}),
  async another() {
    const { engine, die } = crashable(storage)
    return { queue: await queueOn(engine, clock, () => {}), die }
  },
  clean,
})

queueKit(test, 'storage: memory, shared', {
  place: async () => {
    const clock = manualClock()
    const storage: StorageEngine = { ...memoryStorage(clock), exclusive: false }
    return place(clock, storage, storage.close)
  },
})
queueKit(test, 'storage: sqlite', {
  place: async () => {
    const files = await sqlitePlace(manualClock())
    const storage = await files.open()
    return place(files.clock, storage, () => storage.close().then(files.clean))
  },
})
test('shared: a worker whose clock is ahead takes over only the jobs of dead workers', async () => {
  const clock = manualClock()
  const storage: StorageEngine = { ...memoryStorage(clock), exclusive: false }
  const { engine, die } = crashable(storage)
  const began: string[] = []
  const [one, other] = [
    await queueOn(engine, clock, () => {}),
    await queueOn(storage, { ...clock, now: () => clock.now() + 300_000 }, () => {}),
  ]
  const define = (queue: typeof one, name: string) =>
    queue.define(
      'work',
      ({ signal }) => {
        began.push(name)
        return new Promise(resolve => signal.addEventListener('abort', () => resolve()))
      },
      { leaseMs: 8000 },
    )
  define(one, 'one')
  await one.enqueue('work', null)
  await clock.advance(100)
  define(other, 'other')
  await clock.advance(120_000)
  assert.equal(began, ['one'])
  die()
  await clock.advance(12_000)
  assert.equal(began, ['one', 'other'])
  await other.close()
  await storage.close()
})
test("shared: a dead worker's job is taken over in spite of an endless backlog", async () => {
  const clock = manualClock()
  const storage: StorageEngine = { ...memoryStorage(clock), exclusive: false }
  const { engine, die } = crashable(storage)
  const doomed = await queueOn(engine, clock, () => {})
  const survivor = await queueOn(storage, clock, () => {})
  const seen: string[] = []
  doomed.define('work', () => new Promise(() => undefined), { leaseMs: 8000 })
  const lost = await doomed.enqueue('work', 'lost')
  await clock.advance(100)
  die()
  for (let n = 0; n < 5; n++) await survivor.enqueue('work', `backlog ${n}`)
  survivor.define(
    'work',
    async ({ data }) => {
      seen.push(String(data))
      await clock.sleep(500)
      // One comes for each that goes: there is never less to do.
      if (data !== 'lost') await survivor.enqueue('work', `after ${String(data)}`)
    },
    { leaseMs: 8000, concurrency: 1 },
  )
  for (let n = 0; n < 60; n++) await clock.advance(500)
  assert.ok(seen.length > 20, `${seen.length} jobs`)
  assert.is(seen.filter(data => data === 'lost').length, 1)
  assert.is(await survivor.state(lost), 'done')
  let isClosed = false
  const closed = survivor.close().then(() => {
    isClosed = true
  })
  while (!isClosed) await clock.advance(1000)
  await closed
  await storage.close()
})
test.run()
