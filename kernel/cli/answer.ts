// Prints what a command answers: as lines and tables, or as JSON.
import type { Answer } from './admin.ts'

export const print = (text: string) => process.stdout.write(`${text}\n`)

/** A table of objects: one line each, columns by field. */
function tableOf(rows: readonly Record<string, unknown>[]): string {
  const names = Object.keys(rows[0]!)
  const lines = [
    names,
    ...rows.map(row => names.map(name => (row[name] === null ? '' : String(row[name])))),
  ]
  const widths = names.map((_, column) => Math.max(...lines.map(line => line[column]!.length)))
  return lines
    .map(
      line =>
        `\n  ${line
          .map((cell, column) => cell.padEnd(widths[column]!))
          .join('  ')
          .trimEnd()}`,
    )
    .join('')
}

function textOf(value: unknown): string {
  if (Array.isArray(value) && value.length > 0 && value.every(one => typeof one === 'object'))
    return tableOf(value)
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

export function report(answer: Answer, json: boolean): void {
  if (!answer.ok) {
    if (json) print(JSON.stringify({ error: answer.error }))
    process.stderr.write(`${answer.error}\n`)
    process.exitCode = 1
    return
  }
  // A check that found something wrong has an answer and a non-zero exit code.
  if ((answer.result as { ok?: boolean } | null)?.ok === false) process.exitCode = 1
  if (json) print(JSON.stringify(answer.result))
  else
    for (const [name, value] of Object.entries((answer.result ?? {}) as object))
      if (value !== undefined) print(`${name}: ${textOf(value)}`)
}
