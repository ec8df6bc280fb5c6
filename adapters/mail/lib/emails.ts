// The checks and the format that all mail adapters share.
import { fault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import type { Email } from '#ports/mail.ts'
import { lazyRequire } from '../../_shared/lazy-require.ts'

export const fromDefault = 'Agent Platform <no-reply@localhost>'
const addressMax = 254
const subjectMax = 500
const controlPattern = /[\u0000-\u001f\u007f\u0085\u2028\u2029]/
/** One bare address. Lists, display names, comments and quoting could add another recipient. */
const addressPattern = /^[^\s@<>()[\]\\,;:"]+@[^\s@<>()[\]\\,;:"]+$/

/** INVALID_FIELD for text that could add a header or a recipient. */
export function checkEmail({ to, subject }: Email): void {
  if (to.length > addressMax || controlPattern.test(to) || !addressPattern.test(to))
    throw fault('INVALID_FIELD', { field: 'to', why: 'must be one plain e-mail address' })
  if (subject.length > subjectMax || controlPattern.test(subject))
    throw fault('INVALID_FIELD', {
      field: 'subject',
      why: `must be one line of at most ${subjectMax} characters`,
    })
}

/** `Name <address>` or a bare address, from the operator's settings. */
export function checkedFrom(from: string): string {
  const address = /<([^<>]*)>$/.exec(from)?.[1] ?? from
  if (controlPattern.test(from) || !addressPattern.test(address))
    throw fault('INVALID_FIELD', {
      field: 'from',
      why: 'must be an e-mail address, or `Name <address>`',
    })
  return from
}

/**
 * The email in the library's format. Nothing in it makes the library read a file or the network.
 */
export function messageOf(
  { to, subject, text, html }: Email,
  { from, clock }: { from: string; clock: Pick<Clock, 'id' | 'now'> },
) {
  const domain = /@([^@<>\s]+?)>?$/.exec(from)?.[1] ?? 'localhost'
  return {
    from,
    to: { name: '', address: to },
    subject,
    text,
    ...(html === undefined ? {} : { html }),
    date: new Date(clock.now()),
    messageId: `<${clock.id()}@${domain}>`,
    headers: { 'Auto-Submitted': 'auto-generated' },
    disableFileAccess: true,
    disableUrlAccess: true,
  }
}

/** Loads the library with the first email, without its code for HTTP. */
export const mailLibrary = () => lazyRequire('nodemailer') as typeof import('nodemailer')

/** The email as RFC 5322 bytes with CRLF line ends. */
export async function compose(
  letter: Email,
  options: { from: string; clock: Pick<Clock, 'id' | 'now'> },
): Promise<Uint8Array> {
  const { message } = await mailLibrary()
    .createTransport({ streamTransport: true, buffer: true, newline: 'windows' })
    .sendMail(messageOf(letter, options))
  return message as Buffer
}
