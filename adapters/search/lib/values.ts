// The checks of single values: a text, an id, a whole number.
import { fault, type Fault } from '#contracts/faults.ts'
import { searchLimits as limits } from '#ports/search.ts'

export const refuse = (field: string, why: string): Fault => fault('INVALID_FIELD', { field, why })
export const within = (field: string, value: unknown, min: number, max: number): number => {
  if (!Number.isInteger(value) || (value as number) < min || (value as number) > max)
    throw refuse(field, `a whole number from ${min} to ${max}`)
  return value as number
}
/** Half a surrogate pair is refused: it would come back as another character. */
export const isText = (value: unknown): value is string =>
  typeof value === 'string' && value.isWellFormed()
export const bytesOf = (text: string) => Buffer.byteLength(text)

export function checkedId(id: unknown, field: string): string {
  if (!isText(id) || id === '' || bytesOf(id) > limits.idBytesMax)
    throw refuse(field, `a text of 1 to ${limits.idBytesMax} bytes`)
  return id
}
