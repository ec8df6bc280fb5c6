// Sends emails through an SMTP server: smtp://user:password@host:587?from=…
import { fault, type Fault } from '#contracts/faults.ts'
import { defineAdapter, type Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Mailer } from '#ports/mail.ts'
import { closedFault, closable } from '../_shared/closable.ts'
import { checkedFrom, checkEmail, fromDefault, mailLibrary, messageOf } from './lib/emails.ts'
import { wholeOption } from '../_shared/options.ts'

const serviceName = 'The mail server'
const portsUsual = { implicit: 465, starttls: 587, none: 25 }
type Tls = keyof typeof portsUsual
const connectionsMax = 5
const timeoutMsUsual = 20_000

export type SmtpOptions = {
  host: string
  port: number
  tls: Tls
  from: string
  user?: string
  password?: string
  timeoutMs?: number
  clock: Pick<Clock, 'id' | 'now'>
  log: Log
}

/**
 * Describes the error in fixed words. A server's own words may contain an address, a user name or a
 * password.
 */
function reasonOf(error: unknown): { why: string; code: string; responseCode: number | undefined } {
  const {
    code = 'unknown',
    originalCode = code,
    responseCode,
  } = error as { code?: string; originalCode?: string; responseCode?: number }
  const answered = responseCode === undefined ? '' : ` (${responseCode})`
  const whys: Record<string, string> = {
    EAUTH: `it refused the sign-in${answered}`,
    ENOAUTH: 'it wants a sign-in, and the setting names no user',
    ETLS: 'no encrypted connection could be made',
    ETIMEDOUT: 'it did not answer in time',
    EENVELOPE: `it refused the sender or the recipient${answered}`,
    EMESSAGE: `it refused the letter${answered}`,
    EDNS: 'its name is unknown',
    EABORT: 'it did not take the letter in time',
  }
  return {
    why: whys[code] ?? `the connection failed (${originalCode})`,
    code: originalCode,
    responseCode,
  }
}

export function smtp({
  host,
  port,
  tls,
  from,
  user,
  password,
  timeoutMs = timeoutMsUsual,
  clock,
  log,
}: SmtpOptions): Mailer {
  checkedFrom(from)
  const transport = mailLibrary().createTransport({
    pool: true,
    maxConnections: connectionsMax,
    maxRequeues: 1,
    host,
    port,
    secure: tls === 'implicit',
    requireTLS: tls === 'starttls',
    ignoreTLS: tls === 'none',
    connectionTimeout: timeoutMs,
    greetingTimeout: timeoutMs,
    socketTimeout: timeoutMs,
    dnsTimeout: timeoutMs,
    ...(user === undefined ? {} : { auth: { user, pass: password ?? '' } }),
  })
  const { check, shut } = closable(serviceName)
  const closing = new AbortController()
  const refused = (error: unknown, doing: string): Fault => {
    if (closing.signal.aborted) return closedFault(serviceName)
    const { why, code, responseCode } = reasonOf(error)
    log('warn', `mail.${doing}_failed`, {
      code,
      ...(responseCode === undefined ? {} : { responseCode }),
    })
    return fault('UNAVAILABLE', { what: serviceName, why })
  }
  return {
    async send(letter, { signal } = {}) {
      check()
      signal?.throwIfAborted()
      checkEmail(letter)
      // The socket's time-out notices silence only. This one ends a server that answers too slowly.
      const stop = AbortSignal.any([
        closing.signal,
        AbortSignal.timeout(timeoutMs * 2),
        ...(signal === undefined ? [] : [signal]),
      ])
      try {
        await transport.sendMail({ ...messageOf(letter, { from, clock }), signal: stop })
      } catch (error) {
        signal?.throwIfAborted()
        throw refused(error, 'send')
      }
    },
    async ping() {
      check()
      try {
        await transport.verify()
      } catch (error) {
        throw refused(error, 'ping')
      }
    },
    async close() {
      if (!shut()) return
      closing.abort(closedFault(serviceName))
      transport.close({ force: true })
    },
  }
}

/** INVALID_FIELD names the parameter. The URL contains the password and is never quoted. */
export function smtpOptionsOf(url: URL): Omit<SmtpOptions, 'clock' | 'log'> {
  const tls = url.searchParams.get('tls') ?? (url.port === '465' ? 'implicit' : 'starttls')
  if (!Object.hasOwn(portsUsual, tls))
    throw fault('INVALID_FIELD', { field: 'tls', why: 'must be implicit, starttls or none' })
  if (url.hostname === '')
    throw fault('INVALID_FIELD', { field: 'host', why: 'the setting names no mail server' })
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? portsUsual[tls as Tls] : Number(url.port),
    tls: tls as Tls,
    from: url.searchParams.get('from') ?? fromDefault,
    timeoutMs: wholeOption(url, 'timeout_ms', timeoutMsUsual, { min: 100, max: 600_000 }),
    ...(url.username === ''
      ? {}
      : { user: decodeURIComponent(url.username), password: decodeURIComponent(url.password) }),
  }
}

export default defineAdapter<Mailer>({
  port: 'mail',
  scheme: 'smtp',
  options: {
    tls:
      'implicit (encrypted from the first byte, port 465), starttls (refuses a server ' +
      'without it) or none; default starttls, on port 465 implicit.',
    from: `The sender, an address or \`Name <address>\`; default ${fromDefault}.`,
    timeout_ms: `How long the server may be silent; default ${timeoutMsUsual}.`,
  },
  open: async ({ url, clock, log }) => smtp({ ...smtpOptionsOf(url), clock, log }),
})
