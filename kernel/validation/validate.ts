// Compiles checks with one Ajv for each generation of routes. A shared one would keep every schema
// for good.
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import type { TSchema } from 'typebox'
import { fault } from '#contracts/faults.ts'
import { normaliser } from './normal-values.ts'

export type Check = (value: unknown) => unknown
/**
 * `now` refuses a schema that does not compile. `on first use` spares a start the milliseconds that
 * each schema takes. It is for schemas that a test compiles, which are this program's own.
 */
export type Compile = 'now' | 'on first use'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const email =
  /^[^\s@"(),:;<>[\\\]]{1,64}@(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))+$/i
const isTimestamp = (text: string) =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(text) &&
  !Number.isNaN(Date.parse(text))

/**
 * The field's name as it was written: `attachments.0` of a body, `query.limit`, a setting, an
 * option.
 */
function fieldOf(where: string, error: ErrorObject): string {
  const path = error.instancePath
    .split('/')
    .slice(1)
    .map(part => part.replaceAll('~1', '/').replaceAll('~0', '~'))
  if (error.keyword === 'required') path.push(String(error.params['missingProperty']))
  if (error.keyword === 'additionalProperties')
    path.push(String(error.params['additionalProperty']))
  return (
    ['body', 'config', 'options'].includes(where) && path.length > 0 ? path : [where, ...path]
  )
    .join('.')
    .slice(0, 200)
}
function whyOf(all: readonly ErrorObject[]): string {
  const error = all[0]!
  const others = all.filter(({ keyword }) => keyword === 'const')
  if (error.keyword === 'required') return 'is required'
  if (error.keyword === 'additionalProperties') return 'is not a known field'
  if (error.keyword === 'format') return `is not a valid ${String(error.params['format'])}`
  if (error.keyword === 'enum')
    return `must be one of ${(error.params['allowedValues'] as unknown[]).join(', ')}`
  if (error.keyword === 'const' && others.length > 1)
    return `must be one of ${others.map(({ params }) => params['allowedValue']).join(', ')}`
  if (error.keyword === 'x-well-formed') return 'is not well-formed Unicode'
  return error.message ?? 'is not valid'
}

/**
 * `check(where, schema)` answers a function. That function returns the checked value, or throws
 * INVALID_FIELD with the field's name.
 */
export function createValidator({ compile = 'now' }: { readonly compile?: Compile } = {}) {
  // Schemas are not checked against a meta-schema, which costs 15 ms and megabytes each time.
  // Strict mode already refuses unknown keywords, types and formats, and keywords of the wrong
  // type.
  const options = {
    strict: true,
    strictTypes: false,
    useDefaults: true,
    allErrors: false,
    validateFormats: true,
    meta: false,
    validateSchema: false,
    // A pass over the generated code costs a third of a start; V8 optimises what runs often.
    code: { optimize: false },
  } as const
  const make = (coerceTypes: boolean) => {
    const ajv = new Ajv2020({ ...options, coerceTypes })
    ajv.addVocabulary(['x-ref', 'x-name', 'x-env', 'x-secret', 'x-operand', 'example'])
    return ajv
      .addKeyword({
        keyword: 'x-well-formed',
        type: 'string',
        schemaType: 'boolean',
        validate: (asked: boolean, text: string) => !asked || text.isWellFormed(),
      })
      .addFormat('uuid', uuid)
      .addFormat('email', { validate: (text: string) => text.length <= 254 && email.test(text) })
      .addFormat('date-time', { validate: isTimestamp })
  }
  // Made on first use: each takes milliseconds and half a megabyte.
  let exact: Ajv2020 | undefined
  let coercing: Ajv2020 | undefined
  return {
    /**
     * An optional field that is null counts as absent, and an id becomes lower case. Only query,
     * path and header values arrive as text, so only their types are coerced.
     */
    check(
      where: 'body' | 'query' | 'path' | 'headers' | 'config' | 'options' | 'reply',
      schema: TSchema,
    ): Check {
      const compiled = () =>
        (where === 'body' || where === 'reply'
          ? (exact ??= make(false))
          : (coercing ??= make(true))
        ).compile(schema)
      let valid = compile === 'now' ? compiled() : undefined
      const normal =
        where === 'body' || where === 'query' || where === 'path' ? normaliser(schema) : undefined
      return given => {
        const value = normal ? normal(given) : given
        valid ??= compiled()
        if (valid(value)) return value
        const all = valid.errors!
        throw fault('INVALID_FIELD', { field: fieldOf(where, all[0]!), why: whyOf(all) })
      }
    },
  }
}
export type Validator = ReturnType<typeof createValidator>
