// One JSON object a line, on standard error. Standard output belongs to commands.
import type { Log } from '#ports/adapter.ts'

const levels = ['debug', 'info', 'warn', 'error'] as const
export type Level = (typeof levels)[number]
const secretName = /secret|password|token|authorization|api_?key|cookie|credential/i
const secretText = /\b(sk_live_|pk_live_)[\w-]+|\beyJ[\w-]+\.[\w-]+\.[\w-]+|(:\/\/[^\s:/@]*:)[^\s@]+(@)/g

/** Takes out what looks like a key, a token or a password in a URL. */
export const redact = (text: string): string => text.replace(secretText, (_, key?: string, start?: string, end?: string) => (key ? `${key}…` : start ? `${start}…${end}` : '…'))

function plain(name: string, value: unknown): unknown {
  if (secretName.test(name)) return '…'
  if (value instanceof Error) return redact(`${value.stack ?? value.message}${value.cause instanceof Error ? `\ncaused by ${value.cause.stack}` : ''}`)
  return typeof value === 'string' ? redact(value) : value
}

export function createLog({ level, now, write }: { level: Level; now: () => number; write: (line: string) => void }): Log {
  const least = levels.indexOf(level)
  return (at, event, fields = {}) => {
    if (levels.indexOf(at) < least) return
    const rest = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plain(name, value)]))
    write(`${JSON.stringify({ at: new Date(now()).toISOString(), level: at, event, ...rest })}\n`)
  }
}
