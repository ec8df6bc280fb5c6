// Turns SQLite's errors into faults.
import { fault, hasCode, isFault } from '#contracts/faults.ts'
import type { Failure } from './protocol.ts'

const codeOf = (error: unknown): number =>
  error instanceof Error && 'errcode' in error ? Number(error.errcode) : 0
/** Primary result codes, https://www.sqlite.org/rescode.html */
const codes = { busy: 5, ioerr: 10, corrupt: 11, full: 13, notadb: 26 } as const
const uniques = new Set([1555, 2067])

export const isDuplicate = (error: unknown): boolean =>
  uniques.has(codeOf(error)) || hasCode(error, 'DUPLICATE')

/** After these the transaction cannot be trusted. */
export const isFatal = (error: unknown): boolean =>
  [codes.ioerr, codes.corrupt, codes.full, codes.notadb].includes((codeOf(error) & 0xff) as 10)

/** "UNIQUE constraint failed: c_runs.f_orgId, c_runs.f_key" names the columns. */
const duplicateFields = (message: string): string =>
  [...message.matchAll(/\.(?:f_)?(\w+)/g)].map(([, field]) => field).join(', ')

export function failureOf(error: unknown): Failure {
  if (isFault(error)) return { code: error.code, values: error.values }
  const message = error instanceof Error ? error.message : String(error)
  if (uniques.has(codeOf(error)))
    return { code: 'DUPLICATE', values: { fields: duplicateFields(message) } }
  if ((codeOf(error) & 0xff) === codes.full) return { code: 'STORAGE_FULL', values: {} }
  return { code: 'UNAVAILABLE', values: { what: 'The database', why: message } }
}

export const lost: Failure = {
  code: 'UNAVAILABLE',
  values: {
    what: 'The database',
    why: 'a commit failed, and what this builds upon was lost with it',
  },
}
export const raise = ({ code, values }: Failure) =>
  fault(
    code,
    values,
    code === 'UNAVAILABLE' || code === 'STORAGE_FULL' ? { retryAfterMs: 1000 } : {},
  )
