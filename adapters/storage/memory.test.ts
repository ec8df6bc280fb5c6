import { test } from 'uvu'
import { storageKit } from '../../test/kit/storage.ts'
import { manualClock } from '../clock/manual.ts'
import { memoryStorage } from './memory.ts'

storageKit(test, 'memory', {
  survives: false,
  place: async () => {
    const clock = manualClock()
    return { clock, open: async () => memoryStorage(clock) }
  },
})
test.run()
