import { test } from 'uvu'
import type { StorageEngine } from '#ports/storage.ts'
import { mortal } from '../../test/kit/mortal.ts'
import { queueKit } from '../../test/kit/queue.ts'
import { sqlitePlace } from '../../test/kit/sqlite.ts'
import { manualClock, type ManualClock } from '../clock/manual.ts'
import { memoryStorage } from '../storage/memory.ts'
import { queueOn } from './storage.ts'

const place = (clock: ManualClock, storage: StorageEngine, clean: () => Promise<void>) => ({
  clock,
  open: () => queueOn(storage, clock, () => {}),
  async another() {
    const { engine, die } = mortal(storage)
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
test.run()
