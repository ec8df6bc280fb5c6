// Emails of the identity plugin.
import type { Email } from '#ports/mail.ts'
import { codeMs } from '../config.ts'

const minutes = codeMs / 60_000

export const codeEmail = (to: string, code: string): Email => ({
  to,
  subject: `Your code is ${code}`,
  text:
    `Your code is ${code}\n\nIt proves that this address is yours, and works for ${minutes} ` +
    `minutes.\nIf you did not register, ignore this letter: without the code nothing ` +
    `happens.\n`,
})

export const ownerEmail = (to: string): Email => ({
  to,
  subject: 'Somebody tried to register with your address',
  text:
    'Somebody, perhaps you, tried to register an account with this address. You have one ' +
    'already: sign in with it.\nNothing was changed. If it was not you, there is nothing to ' +
    'do.\n',
})
