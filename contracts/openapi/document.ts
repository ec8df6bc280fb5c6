// Folds operations into one OpenAPI 3.1 document (OpenAPI Specification 3.1.1).
import type { TSchema } from 'typebox'
import { errorSchemas } from './errors.ts'
import { addEvents } from './events.ts'
import { createExamples } from './examples.ts'
import { idOf, operationOf, tagOf, type Described } from './operations.ts'
import { createSchemas, type Json } from './schemas.ts'
import { tags } from './tags.ts'

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
const headers: Json = {
  'X-Request-Id': {
    description: 'Names the request in the logs of the platform; yours, where you sent one.',
    schema: { type: 'string' },
  },
  'Retry-After': {
    description: 'Seconds until the same request is worth another try (RFC 9110, section 10.2.3).',
    schema: { type: 'integer', minimum: 1 },
  },
}
const description = [
  'Durable agent runs over HTTP and Server-Sent Events.',
  '',
  'Exchange an API key for an access token (`exchangeApiKey`), start a run (`startRun`), and read',
  'its events (`followRun`). Every error is an `ApiError`, but for /readyz; every list is',
  '`{items, next_cursor}`.',
  'Timestamps are ISO-8601 in UTC, identifiers are UUIDs. An optional field that is null means the',
  'same as no field.',
  '',
  'Within `/api/v1` operations, fields, event types and error codes are only added. What is marked',
  '`deprecated` keeps working there. Skip fields, event types and codes that you do not know.',
].join('\n')

/** Chapters that have operations: ours in their order, then those of other plugins. */
function usedTags(
  operations: readonly Described[],
): { readonly name: string; readonly description: string }[] {
  const used = new Set(operations.map(tagOf))
  const ours = Object.entries(tags).filter(([name]) => used.has(name))
  const others = [...used]
    .filter(name => !Object.hasOwn(tags, name))
    .sort((a, b) => a.localeCompare(b))
    .map(name => [name, `Operations of the plugin ${name}.`] as const)
  return [...ours, ...others].map(([name, about]) => ({ name, description: about }))
}

/**
 * `events`: SSE event types → the schema of their data. The document lists them under
 * components.schemas as `<Type>Event`, and their union as `RunEvent`.
 */
export function openapi(
  operations: readonly Described[],
  events: Readonly<Record<string, TSchema>>,
  version: string,
): Json {
  const schemas = createSchemas()
  for (const [name, schema] of Object.entries(errorSchemas)) schemas.add(name, schema as Json)
  addEvents(schemas, events)
  const writing = {
    schemas,
    exampleOf: createExamples(schemas.find),
    hasEvents: Object.keys(events).length > 0,
  }
  const ids = new Set<string>()
  const paths: Record<string, Json> = {}
  const chapters = usedTags(operations)
  const chapterOf = (one: Described) => chapters.findIndex(({ name }) => name === tagOf(one))
  // By chapter, and within it as the contracts have them: in the order of a client's work.
  for (const each of [...operations].sort((a, b) => chapterOf(a) - chapterOf(b))) {
    const id = idOf(each)
    if (ids.has(id)) throw new Error(`Two operations have the id ${id} in the API document.`)
    ids.add(id)
    const method = each.key.slice(0, each.key.indexOf(' ')).toLowerCase()
    paths[each.path] = { ...paths[each.path], [method]: operationOf(each, writing) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Agent platform',
      version,
      description,
      license: { name: 'MIT', identifier: 'MIT' },
      contact: { name: 'Whoever runs this installation' },
    },
    servers: [{ url: '/', description: 'The server that answered this document.' }],
    tags: chapters,
    paths,
    components: { securitySchemes, headers, schemas: schemas.components() },
  }
}
