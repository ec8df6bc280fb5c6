// Folds operations into one OpenAPI 3.1 document (OpenAPI Specification 3.1.1).
import type { TSchema } from 'typebox'
import type { Operation } from './contract.ts'
import { faults } from './faults.ts'
import { isSchema, statusesOf, successOf } from './statuses.ts'

export type Described = {
  readonly key: string
  /** The path with its mount; `{name}` is a parameter. */
  readonly path: string
  /** The plugin's name, which groups the documentation. */
  readonly group: string
  readonly operation: Operation
}
type Json = { [name: string]: unknown }

const reasons: Record<number, string> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  204: 'Done; nothing to say',
}
const phrases: Record<number, string> = {
  400: 'Malformed; the message names the field',
  401: 'The token is missing, expired or invalid',
  402: 'Not enough credits; nothing started',
  403: 'Not allowed',
  404: 'Unknown, or not yours',
  405: 'Not offered here',
  408: 'Too slow',
  409: 'Conflict',
  413: 'Too large',
  415: 'Not a media type that is taken',
  429: 'Too often; honour Retry-After',
  500: 'Our error',
  502: 'A provider failed',
  503: 'Not now; retry with backoff',
}

const parametersOf = (operation: Operation): Json[] => {
  const rows = (
    place: string,
    properties: Readonly<Record<string, TSchema>>,
    required: readonly string[],
  ) =>
    Object.entries(properties).map(([name, schema]) => ({
      name,
      in: place,
      required: required.includes(name),
      schema,
      ...((schema as { description?: string }).description
        ? { description: (schema as { description?: string }).description }
        : {}),
    }))
  const query = operation.query as
    | { properties?: Record<string, TSchema>; required?: string[] }
    | undefined
  return [
    ...rows('path', operation.params ?? {}, Object.keys(operation.params ?? {})),
    ...rows('query', query?.properties ?? {}, query?.required ?? []),
    ...rows('header', operation.headers ?? {}, []),
  ]
}

type Written = {
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly anyOf?: readonly Written[]
  readonly items?: Written
  readonly properties?: Readonly<Record<string, Written>>
  readonly required?: readonly string[]
  readonly description?: string
  readonly default?: unknown
}

/** Allows null beside the schema. */
function orNull(schema: Written): Written {
  const { anyOf, description, default: fallback } = schema
  if (anyOf)
    return anyOf.some(({ type }) => type === 'null')
      ? schema
      : { ...schema, anyOf: [...anyOf, { type: 'null' }] }
  if (
    typeof schema.type === 'string' &&
    schema.type !== 'null' &&
    !schema.enum &&
    !('const' in schema)
  )
    return { ...schema, type: [schema.type, 'null'] as unknown as string }
  return {
    anyOf: [schema, { type: 'null' }],
    ...(description === undefined ? {} : { description }),
    ...(fallback === undefined ? {} : { default: fallback }),
  }
}
/** The body as clients may write it: null for an optional field means the same as no field. */
function asWritten(schema: Written): Written {
  const { properties, items, required = [] } = schema
  if (items) return { ...schema, items: asWritten(items) }
  if (!properties) return schema
  return {
    ...schema,
    properties: Object.fromEntries(
      Object.entries(properties).map(([name, field]) => [
        name,
        required.includes(name) ? asWritten(field) : orNull(asWritten(field)),
      ]),
    ),
  }
}

function successBody(operation: Operation): Json {
  const { reply } = operation
  if (reply === 'none') return {}
  if (reply === 'sse') return { content: { 'text/event-stream': { schema: { type: 'string' } } } }
  if (isSchema(reply)) return { content: { 'application/json': { schema: reply } } }
  const { bytes } = reply as { bytes: string }
  return {
    content: {
      [bytes]: {
        schema: bytes.startsWith('application/json') ? {} : { type: 'string', format: 'binary' },
      },
    },
  }
}

const errorResponses = (operation: Operation): Json =>
  Object.fromEntries(
    [...statusesOf(operation)].map(([status, codes]) => {
      const examples = codes.map(code => [
        code,
        { value: { detail: faults[code][1], code, request_id: '…' } },
      ])
      const content = {
        schema: { $ref: '#/components/schemas/Error' },
        examples: Object.fromEntries(examples),
      }
      return [
        String(status),
        {
          description: phrases[status] ?? 'Refused',
          content: { 'application/json': content },
        },
      ]
    }),
  )

function operationOf({ key, group, operation }: Described): Json {
  return {
    operationId: key
      .toLowerCase()
      .replace(/[^a-z0-9]+/g, '_')
      .replace(/_$/, ''),
    tags: [group],
    summary: operation.summary,
    ...(operation.description ? { description: operation.description } : {}),
    security: (operation.auth ?? 'user') === 'public' ? [] : [{ [operation.auth ?? 'user']: [] }],
    parameters: parametersOf(operation),
    ...(operation.body
      ? {
          requestBody: {
            required: !operation.bodyOptional,
            content: { 'application/json': { schema: asWritten(operation.body as Written) } },
          },
        }
      : {}),
    responses: {
      [String(successOf(operation))]: {
        description: reasons[successOf(operation)] ?? 'Done',
        ...successBody(operation),
      },
      ...(operation.reply === 'sse'
        ? {
            204: {
              description:
                'The stream has ended, and nothing is left behind the cursor: do not come back',
            },
          }
        : {}),
      ...(operation.revalidated ? { 304: { description: 'What you have is still so' } } : {}),
      ...errorResponses(operation),
    },
  }
}

const securitySchemes: Json = {
  user: {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'From POST /api/v1/auth/token (API key) or POST /api/v1/auth/login.',
  },
  operator: {
    type: 'http',
    scheme: 'bearer',
    description: 'The OPERATOR_TOKEN of whoever runs the platform.',
  },
}
const errorSchema: Json = {
  type: 'object',
  required: ['detail', 'code', 'request_id'],
  properties: {
    detail: { type: 'string' },
    code: { type: 'string', enum: Object.keys(faults) },
    request_id: { type: 'string' },
  },
}

/**
 * `events`: SSE event types → the schema of their data. The document lists them under
 * components.schemas as `event.<type>`.
 */
export function openapi(
  operations: readonly Described[],
  events: Readonly<Record<string, TSchema>>,
  version: string,
): Json {
  const paths: Record<string, Json> = {}
  const sorted = [...operations].sort(
    (a, b) => a.path.localeCompare(b.path) || a.key.localeCompare(b.key),
  )
  for (const each of sorted) {
    const method = each.key.slice(0, each.key.indexOf(' ')).toLowerCase()
    paths[each.path] = { ...paths[each.path], [method]: operationOf(each) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Agent platform',
      version,
      description:
        'Durable agent runs over HTTP and Server-Sent Events. Every error is `{detail, ' +
        'code, request_id}`; every list `{items, next_cursor}`; timestamps are ISO-8601 in ' +
        'UTC, identifiers UUIDs.',
    },
    servers: [{ url: '/' }],
    paths,
    components: {
      securitySchemes,
      schemas: {
        Error: errorSchema,
        ...Object.fromEntries(
          Object.entries(events).map(([type, schema]) => [`event.${type}`, schema]),
        ),
      },
    },
  }
}
