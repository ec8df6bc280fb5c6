// Ajv compiled once per generation of the routes: a shared one would keep every schema that it ever
// saw.
import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import type { TSchema } from 'typebox'
import { fault } from '#contracts/faults.ts'
import { normaliser } from './request-body/normal-values.ts'

export type Check = (value: unknown) => unknown

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const email =
  /^[^\s@"(),:;<>[\\\]]{1,64}@(?!-)[a-z0-9-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9-]{1,63}(?<!-))+$/i
const isTimestamp = (text: string) =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/.test(text) &&
  !Number.isNaN(Date.parse(text))

/**
 * The name of the field as it is written: `attachments.0` of a body, `query.limit`, a setting, an
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
function whyOf(error: ErrorObject): string {
  if (error.keyword === 'required') return 'is required'
  if (error.keyword === 'additionalProperties') return 'is not a known field'
  if (error.keyword === 'format') return `is not a valid ${String(error.params['format'])}`
  if (error.keyword === 'enum')
    return `must be one of ${(error.params['allowedValues'] as unknown[]).join(', ')}`
  return error.message ?? 'is not valid'
}

/**
 * `check(where, schema)` answers a function that returns the checked value or throws INVALID_FIELD
 * naming the field.
 */
export function createValidator() {
  // No schema of schemas: it costs 15 ms and megabytes each time, and strict mode refuses unknown
  // keywords, types and formats, and keywords of the wrong type, by itself.
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
    ajv.addVocabulary(['x-ref', 'x-env', 'x-secret', 'x-operand', 'example'])
    return ajv
      .addFormat('uuid', uuid)
      .addFormat('email', { validate: (text: string) => text.length <= 254 && email.test(text) })
      .addFormat('date-time', { validate: isTimestamp })
  }
  // Made when they are first needed: each takes milliseconds and half a megabyte.
  let exact: Ajv2020 | undefined
  let coercing: Ajv2020 | undefined
  return {
    /**
     * An optional field that is null counts as left out, and an id is made lower case. Query, path
     * and header values arrive as text, so only there are types coerced.
     */
    check(
      where: 'body' | 'query' | 'path' | 'headers' | 'config' | 'options' | 'reply',
      schema: TSchema,
    ): Check {
      const valid = (
        where === 'body' || where === 'reply' ? (exact ??= make(false)) : (coercing ??= make(true))
      ).compile(schema)
      const normal =
        where === 'body' || where === 'query' || where === 'path' ? normaliser(schema) : undefined
      return given => {
        const value = normal ? normal(given) : given
        if (valid(value)) return value
        const error = valid.errors![0]!
        throw fault('INVALID_FIELD', { field: fieldOf(where, error), why: whyOf(error) })
      }
    },
  }
}
export type Validator = ReturnType<typeof createValidator>
