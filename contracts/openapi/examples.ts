// Makes an example of a schema: from the examples of its fields, and from their types where a field
// has none.
import type { Json } from './schemas.ts'

type Schema = {
  readonly $ref?: string
  readonly type?: string | readonly string[]
  readonly format?: string
  readonly enum?: readonly unknown[]
  readonly examples?: readonly unknown[]
  readonly default?: unknown
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly minimum?: number
  readonly minItems?: number
  readonly 'x-ref'?: string
}

const ids: Readonly<Record<string, string>> = {
  session: '0193a6f0-1c2d-7e3f-8a4b-5c6d7e8f9a01',
  run: '0193a6f0-2b3c-7d4e-9f5a-6b7c8d9e0f12',
  upload: '0193a6f0-3a4b-7c5d-8e6f-7a8b9c0d1e23',
  artifact: '0193a6f0-4f5a-7b6c-9d7e-8f9a0b1c2d34',
  message: '0193a6f0-5e6f-7a8b-8c9d-0e1f2a3b4c45',
}
const anyId = '0193a6f0-6d7e-7f8a-9b0c-1d2e3f4a5b56'
const anyTime = '2026-01-31T09:30:00.000Z'

/** `find` answers named schemas. Optional fields without an example are left out. */
export function createExamples(find: (name: string) => Json | undefined) {
  const resolve = (schema: Schema): Schema => {
    if (!schema.$ref) return schema
    const { $ref, ...beside } = schema
    return { ...(find($ref.split('/').at(-1)!) as Schema | undefined), ...beside }
  }
  const text = ({ format, 'x-ref': kind }: Schema, field: string): string =>
    format === 'uuid'
      ? (ids[kind ?? field.replace(/_id$/, '')] ?? anyId)
      : format === 'date-time'
        ? anyTime
        : '…'

  /**
   * `field`: the name that it has in an object; ids are told apart by it. `around`: the references
   * that it stands in. A schema that holds itself has no end, so its example ends there with null.
   */
  const exampleOf = (given: Schema, field = '', around: readonly string[] = []): unknown => {
    if (given.$ref !== undefined && around.includes(given.$ref)) return null
    const within = given.$ref === undefined ? around : [...around, given.$ref]
    const schema = resolve(given)
    if (schema.examples) return schema.examples[0]
    if (schema.default !== undefined) return schema.default
    if (schema.enum) return schema.enum[0]
    const [choice] = schema.oneOf ?? schema.anyOf ?? []
    if (choice) return exampleOf(choice, field, within)
    const type = [schema.type].flat()[0]
    if (type === 'object' || schema.properties) return objectOf(schema, within)
    if (type === 'array') return schema.items ? [exampleOf(schema.items, field, within)] : []
    if (type === 'integer' || type === 'number') return schema.minimum ?? 1
    if (type === 'boolean') return false
    return type === 'string' ? text(schema, field) : null
  }
  const isShown = (name: string, field: Schema, required: readonly string[]) =>
    required.includes(name) || resolve(field).examples !== undefined
  const objectOf = ({ properties = {}, required = [] }: Schema, within: readonly string[]): Json =>
    Object.fromEntries(
      Object.entries(properties)
        .filter(([name, field]) => isShown(name, field, required))
        .map(([name, field]) => [name, exampleOf(field, name, within)]),
    )
  return (schema: Json): unknown => exampleOf(schema as Schema)
}
