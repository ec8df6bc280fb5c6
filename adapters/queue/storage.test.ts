import { test } from 'uvu'
import type { StorageEngine } from '#ports/storage.ts'
import { queueKit } from '../../test/kit/queue.ts'
import { sqlitePlace } from '../../test/kit/sqlite.ts'
import { manualClock, type ManualClock } from '../clock/manual.ts'
import { memoryStorage } from '../storage/memory.ts'
import { queueOn } from './storage.ts'

/** The engine as a process sees it that hangs: its calls never come back. */
function mortal(storage: StorageEngine): { readonly storage: StorageEngine; die(): void } {
  let dead = false
  const never = new Promise<never>(() => {})
  const storageOf = new Proxy(storage, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name)
      return typeof value === 'function' ? async (...asked: unknown[]) => (dead ? never : (value as (...asked: unknown[]) => unknown)(...asked)) : value
    },
  })
  return { storage: storageOf, die: () => void (dead = true) }
}

const place = (clock: ManualClock, storage: StorageEngine, clean: () => Promise<void>) => ({
  clock,
  open: () => queueOn(storage, clock, () => {}),
  async another() {
    const { storage: own, die } = mortal(storage)
    return { queue: await queueOn(own, clock, () => {}), die }
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
