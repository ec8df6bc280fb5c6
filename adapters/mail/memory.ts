// Keeps emails in memory, for tests.
import { defineAdapter } from '#ports/adapter.ts'
import type { Email, Mailer } from '#ports/mail.ts'
import { closable } from '../_shared/closable.ts'
import { checkEmail } from './lib/emails.ts'

export type MemoryMailer = Mailer & {
  /** Oldest first; the last thousand. */
  readonly letters: readonly Email[]
}
const lettersMax = 1000

export function memoryMail(): MemoryMailer {
  const letters: Email[] = []
  const { check, shut } = closable('The mailer')
  return {
    letters,
    async send(letter, { signal } = {}) {
      check()
      signal?.throwIfAborted()
      checkEmail(letter)
      letters.push({ ...letter })
      if (letters.length > lettersMax) letters.shift()
    },
    async ping() {
      check()
    },
    async close() {
      shut()
    },
  }
}

export default defineAdapter<MemoryMailer>({
  port: 'mail',
  scheme: 'memory',
  open: async () => memoryMail(),
})
