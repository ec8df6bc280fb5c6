// The size and the depth of values, and texts cut into pieces.
import fc from 'fast-check'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { clip, depthOf, jsonBytes, piecesOf } from './bytes.ts'

const wide = '漢'

const deep = (levels: number) => JSON.parse(`${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`)

const texts = fc
  .array(fc.constantFrom('a', '"', '\\', '\n', '\u0001', 'é', wide, '😀', '\ud83d', '\ude00'), {
    maxLength: 60,
    size: 'max',
  })
  .map(list => list.join(''))
test('pieces are the text again, none is larger than it may be, and no pair is cut', () => {
  fc.assert(
    fc.property(texts, fc.integer({ min: 6, max: 40 }), (whole, max) => {
      const pieces = piecesOf(whole, max)
      assert.is(pieces.join(''), whole)
      for (const piece of pieces) assert.ok(jsonBytes(piece) - 2 <= max)
      const [first = ''] = pieces
      assert.is(clip(whole, max), first)
      for (const [i, piece] of pieces.entries())
        assert.not.ok(
          /[\ud800-\udbff]$/.test(piece) && /^[\udc00-\udfff]/.test(pieces[i + 1] ?? ''),
        )
    }),
  )
})
test('depth is counted without recursion', () => {
  assert.equal([1, [], {}, [[]], { a: [1] }, deep(5)].map(depthOf), [0, 1, 1, 2, 2, 5])
  assert.is(depthOf(deep(200_000)), 200_000)
})

test.run()
