// Writes schemas as generators of clients read them (JSON Schema 2020-12 within OpenAPI 3.1).
// What has a name is referred to by it. Constants that exclude each other become an enumeration.
import type { TSchema } from 'typebox'
import { asNamed } from '../contract.ts'

export type Json = { readonly [name: string]: unknown }
type Schema = {
  readonly type?: string | readonly string[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly patternProperties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly required?: readonly string[]
  readonly example?: unknown
  readonly 'x-name'?: string
  readonly [asNamed]?: Schema
  readonly [annotation: string]: unknown
}

const typeOfValue = (value: unknown): string =>
  value === null ? 'null' : Number.isInteger(value) ? 'integer' : typeof value
const isNull = ({ type }: Schema): boolean => type === 'null'
const valuesOf = ({ const: value, enum: values }: Schema): readonly unknown[] | undefined =>
  values ?? (value === undefined ? undefined : [value])

/** Schemas that were refused, because a generated client could have only one of the two. */
const clash = (name: string) =>
  new Error(`Two schemas have the name ${name}. A name stands for one schema in the API document.`)

/**
 * `write` turns a schema into its portable form. Named schemas, and those inside of it, go to
 * `components`.
 */
export function createSchemas() {
  const components = new Map<string, Json>()

  const add = (name: string, written: Json): Json => {
    const known = components.get(name)
    const { description: _, ...rest } = written
    if (!known) components.set(name, written)
    else {
      const { description: __, ...before } = known
      if (JSON.stringify(before) !== JSON.stringify(rest)) throw clash(name)
    }
    return { $ref: `#/components/schemas/${name}` }
  }

  const eitherOr = ({ anyOf = [], ...rest }: Schema): Json => {
    const others = anyOf.filter(one => !isNull(one))
    const orNull = others.length < anyOf.length
    const values = others.map(valuesOf)
    if (values.every(some => some !== undefined)) {
      const all = [...values.flat(), ...(orNull ? [null] : [])]
      const types = [...new Set(all.map(typeOfValue))]
      return { ...plain(rest), type: types.length === 1 ? types[0] : types, enum: all }
    }
    const written = others.map(write)
    const [only] = written
    if (written.length > 1 || !only) {
      return { ...plain(rest), anyOf: [...written, ...(orNull ? [{ type: 'null' }] : [])] }
    }
    return { ...(orNull ? nullable(only) : only), ...plain(rest) }
  }
  const inner = (schema: Schema | boolean) => (typeof schema === 'boolean' ? schema : write(schema))
  const each = (fields: Readonly<Record<string, Schema>>): Json =>
    Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, write(field)]))

  const plain = (schema: Schema): Json => {
    const { example, const: value, items, properties, patternProperties, ...rest } = schema
    const { additionalProperties, 'x-name': _, ...written } = rest
    // A record: any name, and one schema for all values.
    const values = Object.values(patternProperties ?? {})[0] ?? additionalProperties
    return {
      ...written,
      ...(value === undefined ? {} : { type: typeOfValue(value), enum: [value] }),
      ...(example === undefined ? {} : { examples: [example] }),
      ...(items ? { items: write(items) } : {}),
      ...(properties ? { properties: each(properties) } : {}),
      ...(values === undefined ? {} : { additionalProperties: inner(values) }),
    }
  }

  const write = (schema: Schema): Json => {
    const name = schema['x-name']
    // A copy may have another description, which stands beside the reference.
    const whole = schema[asNamed] ?? schema
    const written = whole.anyOf ? eitherOr(whole) : plain(whole)
    if (name === undefined) return written
    const reference = add(name, written)
    const { description } = schema
    return description === components.get(name)?.['description'] || description === undefined
      ? reference
      : { ...reference, description }
  }

  return {
    write: (schema: TSchema): Json => write(schema as Schema),
    /** Under this name, unless the schema has one of its own. Only objects need one. */
    writeNamed(name: string, schema: TSchema): Json {
      const own = schema as Schema
      return own.type === 'object' || own.properties
        ? write({ 'x-name': name, ...own })
        : write(own)
    },
    add,
    find: (name: string): Json | undefined => components.get(name),
    components: (): Json =>
      Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
  }
}
export type Schemas = ReturnType<typeof createSchemas>

/** Allows null beside what the schema allows. */
export function nullable(schema: Json): Json {
  const { type, enum: values, anyOf } = schema as Schema
  if (anyOf) return anyOf.some(isNull) ? schema : { ...schema, anyOf: [...anyOf, { type: 'null' }] }
  if (type === undefined) return '$ref' in schema ? orReference(schema) : schema
  const types = [type].flat()
  if (types.includes('null')) return schema
  return {
    ...schema,
    type: [...types, 'null'],
    ...(values ? { enum: [...values, null] } : {}),
  }
}
const orReference = ({ $ref, ...rest }: Json): Json => ({
  anyOf: [{ $ref }, { type: 'null' }],
  ...rest,
})

/** The body as clients may write it: null for an optional field means the same as no field. */
export function withNulls(schema: TSchema): TSchema {
  const { properties, items, required = [] } = schema as Schema
  if (items)
    return { ...schema, [asNamed]: undefined, items: withNulls(items as TSchema) } as TSchema
  if (!properties) return schema
  const field = (name: string, value: Schema) => {
    const inside = withNulls(value as TSchema) as Schema
    return required.includes(name) ? inside : { anyOf: [inside, { type: 'null' }] }
  }
  const fields = Object.entries(properties).map(([name, value]) => [name, field(name, value)])
  return {
    ...schema,
    [asNamed]: undefined,
    properties: Object.fromEntries(fields),
  } as unknown as TSchema
}
