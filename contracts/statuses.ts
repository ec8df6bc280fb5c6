// The faults that an operation can answer: those that follow from its row, and those that the row
// names. The OpenAPI document and the checks share this rule.
import type { Operation } from './contract.ts'
import { faults, type FaultCode } from './faults.ts'

export const isSchema = (
  reply: Operation['reply'],
): reply is Exclude<Operation['reply'], string | { readonly bytes: string }> =>
  typeof reply === 'object' && !('bytes' in reply)

export function faultsOf(operation: Operation): readonly FaultCode[] {
  const codes: FaultCode[] = [
    'MALFORMED_REQUEST',
    'INTERNAL',
    'UNAVAILABLE',
    'STORAGE_FULL',
    'STOPPING',
  ]
  const auth = operation.auth ?? 'user'
  if (auth === 'user') codes.push('UNAUTHENTICATED', 'ACCOUNT_SUSPENDED')
  else if (auth !== 'public') codes.push('CREDENTIAL_REFUSED')
  if (operation.params || operation.query || operation.headers || operation.body)
    codes.push('INVALID_FIELD')
  if (operation.query) codes.push('MALFORMED_TEXT', 'CURSOR_INVALID')
  if (operation.params) codes.push('NOT_FOUND')
  if (operation.body)
    codes.push(
      'MALFORMED_JSON',
      'MALFORMED_TEXT',
      'TOO_DEEP',
      'BODY_TOO_LARGE',
      'UNSUPPORTED_MEDIA',
      'REQUEST_TIMEOUT',
      'TOO_MANY_OPEN',
    )
  if (operation.limit) codes.push('RATE_LIMITED')
  if (operation.reply === 'sse') codes.push('CURSOR_INVALID', 'TOO_MANY_OPEN')
  return [...new Set([...codes, ...(operation.faults ?? [])])]
}

/** Status → its fault codes, lowest status first. */
export function statusesOf(operation: Operation): ReadonlyMap<number, readonly FaultCode[]> {
  const codes = faultsOf(operation)
  return new Map(
    [...new Set(codes.map(code => faults[code][0]))]
      .sort((a, b) => a - b)
      .map(status => [status, codes.filter(code => faults[code][0] === status)]),
  )
}

export const successOf = (operation: Operation): number =>
  operation.status ?? (operation.reply === 'none' ? 204 : 200)
