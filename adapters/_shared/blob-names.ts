// Checks names of organisations and blobs. A name cannot leave its folder, and means the same on
// every file system.
import { fault } from '#contracts/faults.ts'

const organisationPattern = /^[a-z0-9][a-z0-9_-]{0,63}$/
const hashPattern = /^[0-9a-f]{64}$/

/** INVALID_FIELD unless it is a plain lower-case name, such as a UUID. */
export function checkedOrganisation(orgId: string): string {
  if (typeof orgId !== 'string' || !organisationPattern.test(orgId))
    throw fault('INVALID_FIELD', {
      field: 'orgId',
      why: 'must be 1 to 64 lower-case letters, digits, hyphens and underscores',
    })
  return orgId
}

/** Any other text is no hash, and is answered like an absent blob. */
export const isHash = (hash: string): boolean => typeof hash === 'string' && hashPattern.test(hash)

/** `<organisation>/<hash>`. */
export const isAddress = (address: string): boolean =>
  organisationPattern.test(address.slice(0, Math.max(0, address.indexOf('/')))) &&
  isHash(address.slice(address.indexOf('/') + 1))

/** Checks the offsets of a read. */
export function checkedRange({
  start = 0,
  end = Infinity,
}: {
  readonly start?: number
  readonly end?: number
}): { start: number; end: number } {
  for (const [field, value] of [
    ['start', start],
    ['end', end],
  ] as const)
    if (!(value >= 0 && (Number.isSafeInteger(value) || value === Infinity)))
      throw fault('INVALID_FIELD', { field, why: 'must be a byte offset of 0 or more' })
  return { start, end }
}
