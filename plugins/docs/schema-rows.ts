// Schemas as rows of a table, and text as HTML.
export type Schema = {
  type?: string | string[]
  format?: string
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  items?: Schema
  oneOf?: Schema[]
  contentSchema?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  description?: string
  default?: unknown
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  maxItems?: number
  $ref?: string
  'x-ref'?: string
  'x-errors'?: Record<string, { status: number; retry: boolean; sentence: string }>
}
export const html = (text: unknown) =>
  String(text).replace(/[&<>"']/g, sign => `&#${sign.charCodeAt(0)};`)
/** Prose, in which backticks mark code. */
export const prose = (text: unknown) => html(text).replace(/`([^`]+)`/g, '<code>$1</code>')

export type Components = Record<string, Schema>
const nameIn = ({ $ref = '' }: Schema) => $ref.split('/').at(-1)!
/** What a reference stands for. Its own description counts before that of its target. */
export const target = (schema: Schema, components: Components): Schema =>
  schema.$ref ? { ...components[nameIn(schema)], ...schema, $ref: '' } : schema

export function typeOf(schema: Schema): string {
  if (schema.$ref) return nameIn(schema)
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(' | ')
  if (schema.const !== undefined) return JSON.stringify(schema.const)
  if (schema.enum) return schema.enum.map(value => JSON.stringify(value)).join(' | ')
  if (Array.isArray(schema.type))
    return schema.type
      .map(type => (type === 'null' ? type : typeOf({ ...schema, type })))
      .join(' | ')
  if (schema.type === 'array') return `${typeOf(schema.items ?? {})}[]`
  const bounds = [
    schema.minimum !== undefined && `≥ ${schema.minimum}`,
    schema.maximum !== undefined && `≤ ${schema.maximum}`,
    schema.minLength !== undefined && schema.minLength > 1 && `≥ ${schema.minLength} characters`,
    schema.maxLength !== undefined && `≤ ${schema.maxLength} characters`,
  ].filter(Boolean)
  return [
    schema['x-ref'] ? `${schema['x-ref']} id` : (schema.format ?? schema.type ?? 'any'),
    ...bounds,
  ].join(', ')
}

export const defaultOf = ({ default: value }: Schema) =>
  value === undefined || value === '' ? '' : ` Default ${JSON.stringify(value)}.`

/** One row for each field, with nested fields indented below. */
export function rows(given: Schema | undefined, components: Components, depth = 0): string {
  if (!given || depth > 4) return ''
  let schema = target(given, components)
  for (let lists = 0; schema.items; lists++) {
    if (lists > 4) return ''
    schema = target(schema.items, components)
  }
  return Object.entries(schema.properties ?? {})
    .map(([name, written]) => {
      const field = target(written, components)
      const notes = (field.description ?? '') + defaultOf(field)
      const optional = schema.required?.includes(name) ? '' : ' <small>optional</small>'
      return (
        `<tr><td style="padding-left:${depth * 1.2}rem">` +
        `<code>${html(name)}</code>${optional}</td>` +
        `<td>${html(typeOf(field))}</td><td>${prose(notes)}</td></tr>` +
        rows(field, components, depth + 1)
      )
    })
    .join('')
}
