// Keeps letters in memory, for tests.
import { defineAdapter } from '#ports/adapter.ts'
import type { Letter, Mailer } from '#ports/mail.ts'
import { gate } from '../_shared/closable.ts'
import { checkLetter } from '../_shared/emails.ts'

export type MemoryMailer = Mailer & {
  /** Oldest first; the last thousand. */
  readonly letters: readonly Letter[]
}
const LETTERS_MAX = 1000

export function memoryMail(): MemoryMailer {
  const letters: Letter[] = []
  const { check, shut } = gate('The mailer')
  return {
    letters,
    async send(letter, { signal } = {}) {
      check()
      signal?.throwIfAborted()
      checkLetter(letter)
      letters.push({ ...letter })
      if (letters.length > LETTERS_MAX) letters.shift()
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
