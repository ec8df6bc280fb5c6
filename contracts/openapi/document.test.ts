// What generators of clients need of the document, and that its examples are true to its schemas.
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { Type as t } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { contract, named, page } from '../contract.ts'
import { openapi } from './document.ts'
import { tags } from './tags.ts'

type Media = { readonly schema: object; readonly example?: unknown }
type Op = {
  readonly operationId: string
  readonly tags: readonly string[]
  readonly description: string
  readonly requestBody?: { readonly content: Readonly<Record<string, Media>> }
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, Media>> }>
  >
}
type Document = {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Op>>>>
  readonly components: { readonly schemas: Readonly<Record<string, object>> }
}
const text = readFileSync(join(resolve(import.meta.dirname, '..'), 'openapi.json'), 'utf8')
const document = JSON.parse(text) as Document
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, op]) => ({ name: `${method} ${path}`, op })),
)

/** Every value of the document with its path, the outermost first. */
function* walk(value: unknown, path = ''): Generator<{ path: string; value: unknown }> {
  yield { path, value }
  if (typeof value !== 'object' || value === null) return
  for (const [key, inner] of Object.entries(value)) yield* walk(inner, `${path}/${key}`)
}
const jsonOf = ({ requestBody, responses }: Op) =>
  [requestBody, ...Object.values(responses)].flatMap(
    body => body?.content?.['application/json'] ?? [],
  )

test('each operation has a name of its own, a chapter and a description', () => {
  const ids = operations.map(({ op }) => op.operationId)
  assert.is(new Set(ids).size, ids.length)
  for (const { name, op } of operations) {
    assert.match(op.operationId, /^[a-z][A-Za-z]+$/, name)
    assert.not.ok(ids.includes(`${op.operationId}Raw`), `${name}: generators add Raw`)
    assert.ok(op.tags.length === 1 && op.tags[0]! in tags, `${name}: ${op.tags[0]}`)
    assert.ok(op.description.length > 10, name)
  }
})

test('examples are what their schemas say, and requests show real values', () => {
  const ajv = new Ajv2020({ strict: false, validateFormats: false, unicodeRegExp: true })
  ajv.addSchema({ $id: 'document', components: document.components })
  const refer = (schema: object): object =>
    JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')) as object
  let count = 0
  for (const { name, op } of operations)
    for (const { schema, example } of jsonOf(op)) {
      if (example === undefined) continue
      const valid = ajv.validate(refer(schema), example)
      assert.ok(valid, `${name}: ${ajv.errorsText()} in ${JSON.stringify(example)}`)
      count++
    }
  assert.ok(count >= 40, `${count} examples`)
  for (const { name, op } of operations)
    for (const { path, value } of walk(op.requestBody?.content))
      assert.is.not(value, '…', `${name}${path} needs an example`)
})

test('schemas are written so that every generator reads them', () => {
  for (const { path, value } of walk(document)) {
    if (path.includes('/example')) continue
    const {
      const: constant,
      pattern,
      anyOf,
    } = (value ?? {}) as {
      const?: unknown
      pattern?: unknown
      anyOf?: { $ref?: string; type?: string }[]
    }
    const isField = path.endsWith('/properties')
    assert.ok(isField || constant === undefined, `${path}: an enumeration of one`)
    if (typeof pattern === 'string')
      assert.not.match(pattern, /\\p\{|\\u\{|\(\?[!=<]/, `${path}: not every language knows this`)
    if (Array.isArray(anyOf) && anyOf.some(({ type }) => type === 'null'))
      assert.ok(
        anyOf.every(({ $ref, type }) => $ref !== undefined || type === 'null'),
        `${path}: the type may be a list with null`,
      )
  }
})

test('every event type is one of RunEvent, to which the stream leads', () => {
  const { oneOf, discriminator } = document.components.schemas['RunEvent'] as {
    oneOf: { $ref: string }[]
    discriminator: { propertyName: string; mapping: Record<string, string> }
  }
  assert.is(discriminator.propertyName, 'type')
  assert.equal(
    Object.values(discriminator.mapping),
    oneOf.map(({ $ref }) => $ref),
  )
  assert.is(discriminator.mapping['token'], '#/components/schemas/TokenEvent')
  const { responses } = document.paths['/api/v1/runs/{run_id}/events']!['get']!
  assert.equal(
    (responses['200']!.content!['text/event-stream']!.schema as { contentSchema: object })
      .contentSchema,
    { $ref: '#/components/schemas/RunEvent' },
  )
})

test('two schemas of one name are refused; a page is named after what it lists', () => {
  const described = (reply: ReturnType<typeof t.Object>) =>
    Object.entries(contract({ 'GET /things': { summary: 'Read things', reply } })).map(
      ([key, operation]) => ({ key, path: '/things', group: 'x', operation }),
    )
  const thing = named('Thing', t.Object({ a: t.String() }))
  const other = named('Thing', t.Object({ a: t.Integer() }))
  assert.throws(
    () => openapi(described(t.Object({ one: thing, two: other })), {}, '1'),
    /Two schemas have the name Thing/,
  )
  const { components, paths } = openapi(described(page(thing)), {}, '1') as unknown as Document
  assert.ok(components.schemas['Page_Thing'] && components.schemas['Thing'])
  assert.is(paths['/things']!['get']!.operationId, 'getThings', 'made of method and path')
})

test('an optional field may be null in a request, and keeps its name and description', () => {
  const { properties } = document.components.schemas['RunStart'] as {
    properties: Record<string, { type: unknown; description?: string }>
  }
  assert.equal(
    ['message', 'session_id', 'plan', 'attachments'].map(name => properties[name]!.type),
    ['string', ['string', 'null'], ['boolean', 'null'], ['array', 'null']],
  )
  assert.is(properties['attachments']!.description, 'Upload ids.')
})

test.run()
