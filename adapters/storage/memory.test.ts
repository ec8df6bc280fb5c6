import { test } from 'uvu'
import { scopedStorage } from '../../test/conformance/scoped.ts'
import { storageKit } from '../../test/conformance/storage.ts'
import { manualClock } from '../clock/manual.ts'
import { memoryStorage } from './memory.ts'

for (const [name, face] of [
  ['memory', memoryStorage],
  [
    'memory, of a tenant',
    (clock: ReturnType<typeof manualClock>) => scopedStorage(memoryStorage(clock)),
  ],
] as const) {
  storageKit(test, name, {
    survives: false,
    place: async () => {
      const clock = manualClock()
      return { clock, open: async () => face(clock) }
    },
  })
}
test.run()
