import { test } from 'uvu'
import { eventlogKit } from '../../test/conformance/eventlog.ts'
import { scopedEventlog } from '../../test/conformance/scoped.ts'
import { memoryEventlog } from './memory.ts'

for (const [name, face] of [
  ['memory', memoryEventlog],
  ['memory, of a tenant', () => scopedEventlog(memoryEventlog())],
] as const) {
  eventlogKit(test, name, {
    survives: false,
    place: async () => ({
      async open() {
        const log = face()
        return { log, close: () => log.close() }
      },
    }),
  })
}
test.run()
