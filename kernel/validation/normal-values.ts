// Normalises what clients may write in several forms. An optional field that is null is left out,
// and an id becomes lower case (RFC 9562, section 4).
import type { TSchema } from 'typebox'

type Schema = {
  type?: string | readonly string[]
  format?: string
  const?: unknown
  enum?: readonly unknown[]
  anyOf?: readonly Schema[]
  items?: Schema
  properties?: Readonly<Record<string, Schema>>
  required?: readonly string[]
}
type Step = (value: unknown) => unknown

const isNull = ({ type }: Schema) => type === 'null'

/**
 * True where the schema allows null: then null has a meaning and stays. An empty schema allows
 * everything.
 */
function allowsNull(schema: Schema): boolean {
  const { type, anyOf, enum: values } = schema
  if (anyOf) return anyOf.some(allowsNull)
  if (values) return values.includes(null)
  if ('const' in schema) return schema.const === null
  return (
    type === undefined || type === 'null' || (typeof type !== 'string' && type.includes('null'))
  )
}

function ofObject({ properties = {}, required = [] }: Schema): Step | undefined {
  const fields = Object.entries(properties).flatMap(([name, schema]) => {
    const step = stepOf(schema)
    const dropped = !required.includes(name) && !allowsNull(schema)
    return step || dropped ? [{ name, step, dropped }] : []
  })
  if (fields.length === 0) return undefined
  return value => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
    const object = value as Record<string, unknown>
    for (const { name, step, dropped } of fields) {
      if (!Object.hasOwn(object, name)) continue
      if (dropped && object[name] === null) delete object[name]
      else if (step) object[name] = step(object[name])
    }
    return object
  }
}

function stepOf(schema: Schema): Step | undefined {
  if (schema.format === 'uuid')
    return value => (typeof value === 'string' ? value.toLowerCase() : value)
  if (schema.properties) return ofObject(schema)
  if (schema.items) {
    const step = stepOf(schema.items)
    return step && (value => (Array.isArray(value) ? value.map(step) : value))
  }
  // With several possible shapes, only the check decides which one is meant.
  const shapes = schema.anyOf?.filter(shape => !isNull(shape)) ?? []
  return shapes.length === 1 ? stepOf(shapes[0]!) : undefined
}

/** Changes the value in place. Undefined where the schema has nothing to normalise. */
export const normaliser = (schema: TSchema): Step | undefined => stepOf(schema as Schema)
