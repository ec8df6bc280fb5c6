// Values made from schemas: one that fits, and ones that do not, each with the field that an error
// must name.
type Schema = {
  type?: string
  format?: string
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  default?: unknown
  minimum?: number
  minLength?: number
  pattern?: string
  example?: unknown
  'x-ref'?: string
}

const uuid = '00000000-0000-7000-8000-00000000dead'

/** A value that fits; optional fields are left out. */
export function sample(schema: object): unknown {
  const {
    type,
    format,
    enum: values,
    const: only,
    anyOf,
    items,
    properties = {},
    required = [],
    default: fallback,
    example,
    minimum,
    minLength = 1,
  } = schema as Schema
  if (fallback !== undefined) return fallback
  if (example !== undefined) return example
  if (only !== undefined) return only
  if (values) return values[0]
  if (anyOf) return sample(anyOf[0]!)
  if (type === 'object')
    return Object.fromEntries(required.map(name => [name, sample(properties[name]!)]))
  if (type === 'array') return items ? [sample(items)] : []
  if (type === 'integer' || type === 'number') return minimum ?? 1
  if (type === 'boolean') return true
  if (format === 'uuid') return uuid
  if (format === 'email') return 'somebody@example.org'
  return 'x'.repeat(Math.max(minLength, 12))
}

/** What an operation's query must hold, as `?name=value`; empty where it needs nothing. */
export const sampleQuery = (schema: object | undefined): string => {
  const text = new URLSearchParams(
    schema ? (sample(schema) as Record<string, string>) : {},
  ).toString()
  return text && `?${text}`
}

export type Wrong = { readonly why: string; readonly value: unknown; readonly field: string }

/** Each field once with another type, each required one once missing. */
export function wrongs(schema: object): Wrong[] {
  const { properties = {}, required = [] } = schema as Schema
  const fits = sample(schema) as Record<string, unknown>
  return [
    ...Object.entries(properties).map(([field, { type, anyOf }]) => ({
      why: `${field} of another type`,
      field,
      value: { ...fits, [field]: anyOf ? 17.5 : type === 'object' ? [1] : { not: 'this' } },
    })),
    ...required.map(field => ({
      why: `${field} missing`,
      field,
      value: Object.fromEntries(Object.entries(fits).filter(([name]) => name !== field)),
    })),
    { why: 'not an object', field: 'body', value: [1, 2] },
  ]
}

/** Fields marked as identifiers: `name`, or `name.0` in a list. */
export type Ref = { readonly field: string; readonly kind: string; readonly list: boolean }
export function refsOf(schema: object | undefined): Ref[] {
  return Object.entries((schema as Schema | undefined)?.properties ?? {}).flatMap(
    ([field, { 'x-ref': kind, items }]): Ref[] =>
      kind
        ? [{ field, kind, list: false }]
        : items?.['x-ref']
          ? [{ field, kind: items['x-ref'], list: true }]
          : [],
  )
}
