import { test } from 'uvu'
import { mailKit } from '../../test/conformance/mail.ts'
import { memoryMail, type MemoryMailer } from './memory.ts'

mailKit(test, 'memory', {
  place: async () => {
    let last: MemoryMailer | undefined
    return {
      open: async () => (last = memoryMail()),
      received: async () => [...(last?.letters ?? [])],
    }
  },
})
test.run()
