// The document and the page, and when they are made.
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Type as t, type TSchema } from 'typebox'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { named, type Operation } from '#contracts/contract.ts'
import type { KernelInfo, Plugin } from '#kernel'
import { loadPlugins } from '../../kernel/loading/sources.ts'
import { endServers, startServer } from '../../test/conformance/plugin/server.ts'
import { pageOf } from './page.ts'
import { createPages } from './pages.ts'

type Document = {
  readonly paths: Readonly<Record<string, unknown>>
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> }
}
type Told = { readonly event: string; readonly name: string; readonly error: Error }

test('both are made once for a set of plugins, and anew for another', () => {
  let made = 0
  let generation = 1
  const host = {
    version: '1.0.0',
    events: () => ({}),
    plugins: () => [{ name: 'x', version: '1', generation, emits: [] }],
    operations: () => {
      made++
      return []
    },
  }
  const pages = createPages({ host: host as unknown as KernelInfo, log: () => undefined })
  const first = pages.document(undefined)
  for (let i = 0; i < 100; i++) [pages.document(undefined), pages.page(undefined)]
  assert.is(made, 1)
  assert.is(pages.document(undefined).value, first.value, 'the same bytes')
  assert.equal(
    [pages.document(first.headers['etag']).status, pages.page(first.headers['etag']).status],
    [304, undefined],
    'each has a tag of its own',
  )
  generation++
  pages.page(undefined)
  assert.is(made, 2)
})

const path = join(resolve(import.meta.dirname, '../..'), 'contracts/openapi.json')
const ours = JSON.parse(readFileSync(path, 'utf8')) as Document
/** A plugin with one operation that answers this. */
const partner = (name: string, reply: TSchema, more: Partial<Operation & Plugin> = {}) =>
  ({
    name,
    version: '1.0.0',
    kernel: '^1.0.0',
    contract: { [`GET /${name}`]: { summary: 'Read it', reply, ...more } },
    routes: { [`GET /${name}`]: () => ({}) },
    ...(more.emits ? { emits: more.emits } : {}),
  }) as Plugin
const odd = t.Object({ odd: t.String() })

test('a plugin that does not fit into the document is left out, and the log says so', async () => {
  const rows: readonly (readonly [Plugin, why: string])[] = [
    [partner('name', named('Run', odd)), 'Two schemas have the name Run.'],
    [partner('id', odd, { id: 'getRun' }), 'Two operations have the id getRun'],
    [partner('event', odd, { emits: { run: odd } }), 'Two schemas have the name RunEvent.'],
    [partner('kind', odd, { emits: { 'a-b': odd, a_b: t.Object({}) } }), 'the name ABData.'],
    [partner('value', t.String({ example: 1n })), 'BigInt'],
  ]
  const base = await loadPlugins()
  const { call, kernel, logged } = await startServer({ plugins: base, env: { LOG_LEVEL: 'warn' } })
  const fits = partner('fits', t.Object({ mine: t.String() }))
  for (const [plugin, why] of rows) {
    logged.length = 0
    await kernel.applyPlugins([...base, plugin, fits])
    const { status, body } = await call('GET', '/openapi.json')
    assert.is(status, 200, plugin.name)
    const { paths, components } = body as Document
    const { '/api/v1/fits': kept, ...others } = paths
    assert.ok(kept, plugin.name)
    assert.equal(others, ours.paths)
    assert.equal(components.schemas['Run'], ours.components.schemas['Run'])
    assert.is((await call('GET', '/docs')).status, 200)
    const told = logged
      .map(line => JSON.parse(line) as Told)
      .filter(({ event }) => event === 'docs.left_out')
    assert.equal(
      told.map(one => one.name),
      [plugin.name],
    )
    assert.ok(told[0]!.error.message.includes(why), told[0]!.error.message)
  }
})

test('a schema that holds itself ends, and no text of a plugin is read as HTML', async () => {
  const node = {
    type: 'object',
    properties: { next: { $ref: '#/$defs/Node' } },
    required: ['next'],
  }
  const list = { type: 'array', items: { $ref: '#/$defs/List' } }
  const reply = { ...node, 'x-name': 'Node', $defs: { Node: node, List: list } } as TSchema
  const base = await loadPlugins()
  const { call } = await startServer({
    plugins: [
      ...base,
      partner('endless', reply),
      partner('list', {
        ...t.Object({ all: list as TSchema }),
        'x-name': 'List',
        $defs: { List: list },
      }),
      partner('html', odd, { id: '"><script>', tag: 'constructor', summary: '<script>' }),
    ],
  })
  const { paths } = (await call('GET', '/openapi.json')).body as Document
  for (const name of ['endless', 'list', 'html']) assert.ok(paths[`/api/v1/${name}`], name)
  const { text } = await call('GET', '/docs')
  assert.not.match(text, '<script>')
  assert.match(text, '<h2>constructor</h2>')
})

test('a field that may be null has its type in its own row, and its fields below it', () => {
  const place = { type: ['object', 'null'], properties: { city: { type: ['string', 'null'] } } }
  const schema = { type: 'object', properties: { name: { type: ['string', 'null'] }, place } }
  const page = pageOf({
    info: { title: 'x', version: '1', description: '' },
    paths: {},
    components: {
      schemas: {
        RunEvent: { oneOf: [{ $ref: '#/components/schemas/SeenEvent' }] },
        SeenEvent: { properties: { type: { enum: ['seen'] }, data: schema } },
      },
    },
  })
  const [, table] = /<section id="event-seen">.*?<table>(.*?)<\/table>/s.exec(page)!
  assert.equal(table!.replace(/<tr>.*?<\/tr>/gs, ''), '', 'nothing stands outside a row')
  assert.equal(
    [...table!.matchAll(/<code>(\w+)<\/code>/g)].map(([, name]) => name),
    ['name', 'place', 'city'],
  )
})

test.after(endServers)
test.run()
