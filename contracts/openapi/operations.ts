// One operation of the document.
import type { TSchema } from 'typebox'
import type { Operation } from '../contract.ts'
import { isSchema, successOf } from '../statuses.ts'
import { errorResponses } from './errors.ts'
import { streamContent } from './events.ts'
import type { createExamples } from './examples.ts'
import { withNulls, type Json, type Schemas } from './schemas.ts'

export type Described = {
  readonly key: string
  /** The path with its mount; `{name}` is a parameter. */
  readonly path: string
  /** The plugin's name: the chapter of operations that name none. */
  readonly group: string
  readonly operation: Operation
}
export type Writing = {
  readonly schemas: Schemas
  readonly exampleOf: ReturnType<typeof createExamples>
  readonly hasEvents: boolean
}

const reasons: Record<number, string> = {
  200: 'OK',
  201: 'Created',
  202: 'Accepted',
  204: 'Done; nothing to say',
}
const requestId: Json = { 'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' } }

export const tagOf = ({ operation, group }: Described): string => operation.tag ?? group
/** `GET /things/{id}` → `getThingsId`, for rows that name no id. */
export const idOf = ({ key, operation }: Pick<Described, 'key' | 'operation'>): string =>
  operation.id ??
  key
    .split(/[^A-Za-z0-9]+/)
    .filter(Boolean)
    .map((word, i) =>
      i === 0 ? word.toLowerCase() : word.slice(0, 1).toUpperCase() + word.slice(1),
    )
    .join('')
const nameOf = (described: Described, suffix: string) => {
  const id = idOf(described)
  return id.slice(0, 1).toUpperCase() + id.slice(1) + suffix
}

function parametersOf({ params, query, headers }: Operation, schemas: Schemas): Json[] {
  const rows = (
    place: string,
    properties: Readonly<Record<string, TSchema>>,
    required: readonly string[],
  ) =>
    Object.entries(properties).map(([name, schema]) => {
      const { description, ...written } = schemas.write(schema)
      return {
        name,
        in: place,
        required: required.includes(name),
        schema: written,
        ...(description === undefined ? {} : { description }),
      }
    })
  const asked = query as { properties?: Record<string, TSchema>; required?: string[] } | undefined
  return [
    ...rows('path', params ?? {}, Object.keys(params ?? {})),
    ...rows('query', asked?.properties ?? {}, asked?.required ?? []),
    ...rows('header', headers ?? {}, []),
  ]
}

const jsonContent = (schema: Json, { exampleOf }: Writing): Json => ({
  'application/json': { schema, example: exampleOf(schema) },
})

function successContent(described: Described, writing: Writing): Json {
  const { reply } = described.operation
  if (reply === 'none') return {}
  if (reply === 'sse') return { content: streamContent(writing.hasEvents) }
  if (isSchema(reply)) {
    const schema = writing.schemas.writeNamed(nameOf(described, 'Response'), reply)
    return { content: jsonContent(schema, writing) }
  }
  const { bytes } = reply as { bytes: string }
  // Generators take `*/*` for no type at all.
  const media = bytes === '*/*' ? 'application/octet-stream' : bytes
  const schema = bytes.startsWith('application/json')
    ? { type: 'object' }
    : bytes.startsWith('text/')
      ? { type: 'string' }
      : { type: 'string', format: 'binary' }
  return { content: { [media]: { schema } } }
}

function requestBody(described: Described, writing: Writing): Json {
  const { body, bodyOptional } = described.operation
  if (!body) return {}
  const schema = writing.schemas.writeNamed(nameOf(described, 'Request'), withNulls(body))
  return { requestBody: { required: !bodyOptional, content: jsonContent(schema, writing) } }
}

export function operationOf(described: Described, writing: Writing): Json {
  const { operation } = described
  const auth = operation.auth ?? 'user'
  const status = successOf(operation)
  const answer = (description: string, more: Json = {}): Json => ({
    description,
    headers: requestId,
    ...more,
  })
  const success = answer(reasons[status] ?? 'Done', successContent(described, writing))
  return {
    operationId: idOf(described),
    tags: [tagOf(described)],
    summary: operation.summary,
    description: operation.description ?? `${operation.summary}.`,
    security: auth === 'public' ? [] : [{ [auth]: [] }],
    parameters: parametersOf(operation, writing.schemas),
    ...requestBody(described, writing),
    responses: {
      [String(status)]: success,
      ...(operation.reply === 'sse'
        ? {
            204: answer(
              'The stream has ended, and nothing is left behind the cursor: do not come back',
            ),
          }
        : {}),
      ...(operation.revalidated ? { 304: answer('What you have is still so') } : {}),
      ...errorResponses(operation, requestId),
      ...Object.fromEntries((operation.otherStatuses ?? []).map(other => [other, success])),
    },
  }
}
