// The document and the page, and when they are made.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { KernelInfo } from '#kernel'
import { pageOf } from './page.ts'
import { createPages } from './pages.ts'

test('both are made once for a set of plugins, and anew for another', () => {
  let made = 0
  let generation = 1
  const host = {
    version: '1.0.0',
    events: () => ({}),
    plugins: () => [{ name: 'x', version: '1', generation }],
    operations: () => {
      made++
      return []
    },
  }
  const pages = createPages({ host: host as unknown as KernelInfo })
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

test.run()
