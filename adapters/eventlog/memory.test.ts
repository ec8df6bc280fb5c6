import { test } from 'uvu'
import { eventlogKit } from '../../test/kit/eventlog.ts'
import { memoryEventlog } from './memory.ts'

eventlogKit(test, 'memory', {
  survives: false,
  place: async () => ({
    async open() {
      const log = memoryEventlog()
      return { log, close: () => log.close() }
    },
  }),
})
test.run()
