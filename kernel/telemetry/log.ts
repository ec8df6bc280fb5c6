// The log: one JSON object a line on standard error, with `level`, `time` (ISO 8601), `event` and
// fields. Standard output belongs to commands.
import { pino } from 'pino'
import type { Log } from '#ports/adapter.ts'

const levels = ['debug', 'info', 'warn', 'error'] as const
type Level = (typeof levels)[number]
const secretName = /secret|password|token|authorization|api_?key|cookie|credential/i
const secretText =
  /\b(sk_live_|pk_live_)[\w-]+|\beyJ[\w-]+\.[\w-]+\.[\w-]+|(:\/\/[^\s:/@]*:)[^\s@]+(@)/g

/** Removes what looks like a key, a token or a password in a URL. */
const redact = (text: string): string =>
  text.replace(secretText, (_, key?: string, start?: string, end?: string) =>
    key ? `${key}…` : start ? `${start}…${end}` : '…',
  )

/** Levels of a field that are logged; deeper values are left out. */
const depthMax = 4

const stackWithCauses = ({ stack, message, cause }: Error): string =>
  `${stack ?? message}${cause instanceof Error ? `\ncaused by ${stackWithCauses(cause)}` : ''}`

/** An error as a log field: message, stack and code. The stack includes the causes. */
function serializeError(error: unknown): { message: string; stack?: string; code?: string } {
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
  if (value instanceof Error || (depth === 0 && name === 'error')) return serializeError(value)
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
 * Writes by pino in this thread, because a transport would need another one. Secrets are removed by
 * name and by look first; pino's redaction by path is a second check.
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
  // A line below the level costs only this comparison.
  return (at, event, fields = {}) => {
    if (levels.indexOf(at) >= least) logger[at](fields, event)
  }
}
