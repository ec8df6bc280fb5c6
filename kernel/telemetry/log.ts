// One JSON object a line, on standard error: `level`, `time` (ISO 8601), `event`, then its fields.
// Standard output belongs to commands.
import { pino } from 'pino'
import type { Log } from '#ports/adapter.ts'

const levels = ['debug', 'info', 'warn', 'error'] as const
export type Level = (typeof levels)[number]
const secretName = /secret|password|token|authorization|api_?key|cookie|credential/i
const secretText =
  /\b(sk_live_|pk_live_)[\w-]+|\beyJ[\w-]+\.[\w-]+\.[\w-]+|(:\/\/[^\s:/@]*:)[^\s@]+(@)/g

/** Takes out what looks like a key, a token or a password in a URL. */
export const redact = (text: string): string =>
  text.replace(secretText, (_, key?: string, start?: string, end?: string) =>
    key ? `${key}…` : start ? `${start}…${end}` : '…',
  )

/** What lies deeper than this in a field is left out. */
const depthMax = 4

const stackWithCauses = ({ stack, message, cause }: Error): string =>
  `${stack ?? message}${cause instanceof Error ? `\ncaused by ${stackWithCauses(cause)}` : ''}`

/** An error as a field: what it says, where, and its code; the stack tells its causes too. */
export function toldError(error: unknown): { message: string; stack?: string; code?: string } {
  if (!(error instanceof Error)) return { message: redact(String(error)) }
  const { code } = error as { code?: unknown }
  return {
    message: redact(error.message),
    stack: redact(stackWithCauses(error)),
    ...(code === undefined ? {} : { code: String(code) }),
  }
}

function plain(name: string, value: unknown, depth = 0): unknown {
  if (secretName.test(name)) return '…'
  if (value instanceof Error || (depth === 0 && name === 'error')) return toldError(value)
  if (typeof value === 'string') return redact(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth === depthMax) return '…'
  return Array.isArray(value)
    ? value.map(item => plain('', item, depth + 1))
    : Object.fromEntries(
        Object.entries(value).map(([inner, part]) => [
          redact(inner),
          plain(inner, part, depth + 1),
        ]),
      )
}

/**
 * Written by pino in this thread: a transport would be a thread more. What looks like a secret goes
 * first by its name or its look, wherever it lies; what pino redacts by path is the second net.
 */
export function createLog({
  level,
  now,
  write,
}: {
  level: Level
  now: () => number
  write: (line: string) => void
}): Log {
  const least = levels.indexOf(level)
  const logger = pino(
    {
      level,
      base: null,
      messageKey: 'event',
      timestamp: () => `,"time":"${new Date(now()).toISOString()}"`,
      formatters: {
        level: label => ({ level: label }),
        log: fields =>
          Object.fromEntries(
            Object.entries(fields).map(([name, value]) => [name, plain(name, value)]),
          ),
      },
      redact: {
        paths: [
          'password',
          'token',
          'secret',
          'authorization',
          'cookie',
          'headers.authorization',
          'headers.cookie',
        ],
        censor: '…',
      },
    },
    { write },
  )
  // What is left out costs nothing more than this comparison.
  return (at, event, fields = {}) => {
    if (levels.indexOf(at) >= least) logger[at](fields, event)
  }
}
