// One JSON object a line, on standard error. Standard output belongs to commands.
import type { Log } from '#ports/adapter.ts'

const levels = ['debug', 'info', 'warn', 'error'] as const
export type Level = (typeof levels)[number]
const secretName = /secret|password|token|authorization|api_?key|cookie|credential/i
const secretText = /\b(sk_live_|pk_live_)[\w-]+|\beyJ[\w-]+\.[\w-]+\.[\w-]+|(:\/\/[^\s:/@]*:)[^\s@]+(@)/g

/** Takes out what looks like a key, a token or a password in a URL. */
export const redact = (text: string): string => text.replace(secretText, (_, key?: string, start?: string, end?: string) => (key ? `${key}…` : start ? `${start}…${end}` : '…'))

/** What lies deeper than this in a field is left out. */
const depthMax = 4

const told = (error: Error): string => `${error.stack ?? error.message}${error.cause instanceof Error ? `\ncaused by ${told(error.cause)}` : ''}`

function plain(name: string, value: unknown, depth = 0): unknown {
  if (secretName.test(name)) return '…'
  if (value instanceof Error) return redact(told(value))
  if (typeof value === 'string') return redact(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value !== 'object' || value === null) return value
  if (depth === depthMax) return '…'
  return Array.isArray(value) ? value.map(item => plain('', item, depth + 1)) : Object.fromEntries(Object.entries(value).map(([inner, part]) => [redact(inner), plain(inner, part, depth + 1)]))
}

export function createLog({ level, now, write }: { level: Level; now: () => number; write: (line: string) => void }): Log {
  const least = levels.indexOf(level)
  return (at, event, fields = {}) => {
    if (levels.indexOf(at) < least) return
    const rest = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, plain(name, value)]))
    write(`${JSON.stringify({ at: new Date(now()).toISOString(), level: at, event, ...rest })}\n`)
  }
}
