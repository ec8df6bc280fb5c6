// The document and the page, and when they are made.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Introspection } from '#kernel'
import { createPages } from './pages.ts'

test('both are made once for a set of plugins, and anew for another', () => {
  let made = 0, generation = 1
  const host = { version: '1.0.0', events: () => ({}), plugins: () => [{ name: 'x', version: '1', generation }], operations: () => { made++; return [] } }
  const pages = createPages({ host: host as unknown as Introspection })
  const first = pages.document(undefined)
  for (let i = 0; i < 100; i++) [pages.document(undefined), pages.page(undefined)]
  assert.is(made, 1)
  assert.is(pages.document(undefined).value, first.value, 'the same bytes')
  assert.equal([pages.document(first.headers['etag']).status, pages.page(first.headers['etag']).status], [304, undefined], 'each has a tag of its own')
  generation++
  pages.page(undefined)
  assert.is(made, 2)
})

test.run()
