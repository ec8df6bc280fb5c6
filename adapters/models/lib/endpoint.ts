// The address of a provider, and the key for it: the rules that a URL and a file share.
import { fault } from '#contracts/faults.ts'
import type { AdapterContext } from '#ports/adapter.ts'

export const concurrencyUsual = 64
export const concurrencyMax = 10_000
export const timeoutMs = 120_000
export const timeoutBounds = { min: 100, max: 3_600_000 }

/**
 * A vendor's own address, and the variable that holds its key. That key is sent nowhere else unless
 * the operator says so.
 */
export type Vendor = { readonly name: string; readonly baseUrl: string; readonly keyName: string }
type Named = {
  /** Undefined: the vendor's own address. */ readonly baseUrl: string | undefined
  /** The name of the variable with the key. */
  readonly keyName: string | undefined
  /** The names of both fields in a refusal. */
  readonly fields: { readonly baseUrl: string; readonly key: string }
}
export type Endpoint = {
  readonly baseUrl: string
  readonly apiKey: string | undefined
  readonly atVendor: boolean
}

/** Throws INVALID_FIELD with the field's name, never with its value. */
export function endpointOf(
  { baseUrl, keyName, fields }: Named,
  vendor: Vendor,
  secret: AdapterContext['secret'],
): Endpoint {
  const refuse = (field: string, why: string) => fault('INVALID_FIELD', { field, why })
  const url = URL.canParse(baseUrl ?? vendor.baseUrl)
    ? new URL(baseUrl ?? vendor.baseUrl)
    : undefined
  if (url === undefined || !['http:', 'https:'].includes(url.protocol))
    throw refuse(fields.baseUrl, 'must be an http: or https: URL')
  if (url.username !== '' || url.password !== '')
    throw refuse(
      fields.baseUrl,
      `must hold no user and no password; ${fields.key} names the variable that holds the key`,
    )
  if (url.search !== '' || url.hash !== '')
    throw refuse(fields.baseUrl, 'must hold no query and no fragment')
  const atVendor = url.host === new URL(vendor.baseUrl).host
  const name = keyName ?? (atVendor ? vendor.keyName : undefined)
  if (name !== undefined && !/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name))
    throw refuse(fields.key, 'must be the name of a variable, not the key itself')
  const apiKey = name === undefined ? undefined : secret(name)
  if (name !== undefined && !apiKey)
    throw refuse(fields.key, `the variable ${name} is not set, nor is ${name}_FILE`)
  if (apiKey !== undefined && !/^[\x21-\x7e]+$/.test(apiKey))
    throw refuse(fields.key, `the variable ${name} holds characters that a key cannot have`)
  return { baseUrl: url.href.replace(/\/$/, ''), apiKey, atVendor }
}
