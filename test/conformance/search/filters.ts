// What each condition of a filter lets through.
import assert from 'node:assert/strict'
import { searchLimits as limits, type SearchQuery } from '#ports/search.ts'
import { refuses } from '../runner.ts'
import { idsOf, index, mixed, ownOrg, type On } from './common.ts'

export function filters(on: On): void {
  on('each condition lets through what it says and nothing else', async passages => {
    await passages.define('c', mixed)
    await index(passages, 'c', [
      { id: 'a', text: 'x', fields: { folder: 'one', page: 1, open: true } },
      { id: 'b', text: 'x', fields: { folder: 'one/two', page: 2.5, open: false } },
      { id: 'c', text: 'x', fields: { folder: 'One', page: -3 } },
      { id: 'd', text: 'x', fields: { folder: 'éa*?', page: 10 } },
      { id: 'e', text: 'x' },
      { id: 'f', text: 'x', fields: { folder: '🦊' } },
      { id: 'g', text: 'x', fields: { folder: '\uffee' } },
    ])
    const all: readonly (readonly [NonNullable<SearchQuery['where']>, string])[] = [
      [{}, 'abcdefg'],
      [{ folder: 'one' }, 'a'],
      [{ folder: 'ONE' }, ''],
      [{ page: 2.5 }, 'b'],
      [{ open: true }, 'a'],
      [{ open: false }, 'b'],
      [{ id: 'd' }, 'd'],
      [{ folder: { in: ['one', 'One', 'none'] } }, 'ac'],
      [{ folder: { in: [] } }, ''],
      [{ page: { in: [1, 10] } }, 'ad'],
      [{ id: { in: ['a', 'z'] } }, 'a'],
      [{ folder: { prefix: 'one' } }, 'ab'],
      [{ folder: { prefix: '' } }, 'abcdfg'],
      [{ folder: { prefix: 'éa*' } }, 'd'],
      [{ folder: { prefix: '*' } }, ''],
      [{ id: { prefix: 'a' } }, 'a'],
      [{ open: { exists: true } }, 'ab'],
      [{ open: { exists: false } }, 'cdefg'],
      [{ page: { gt: 1 } }, 'bd'],
      [{ page: { gte: 1, lt: 10 } }, 'ab'],
      [{ page: { lte: -3 } }, 'c'],
      [{ folder: { gt: 'one' } }, 'bdfg'],
      [{ folder: { gte: '\uffee' } }, 'fg'],
      [{ folder: { lt: 'a' } }, 'c'],
      [{ folder: { prefix: 'one' }, open: false }, 'b'],
      [{ folder: 'one', page: 2.5 }, ''],
    ]
    for (const [where, expected] of all) {
      assert.equal(
        (await idsOf(passages, 'c', { text: 'x', where, limit: 50 })).join(''),
        expected,
        JSON.stringify(where),
      )
      assert.equal(await passages.count('c', where), expected.length, JSON.stringify(where))
    }
    assert.equal(await passages.remove('c', { where: { folder: { prefix: 'one' } } }), 2)
    assert.equal((await idsOf(passages, 'c', { text: 'x' })).join(''), 'cdefg')
    assert.equal(await passages.remove('c', { where: {} }), 5)
  })
  on(
    "a filter that cannot be meant is refused by the field's name, and nothing is removed",
    async passages => {
      await passages.define('c', mixed)
      await index(passages, 'c', [{ id: 'a', text: 'x', fields: { page: 1 } }])
      for (const where of [
        { nowhere: 1 },
        { text: 'x' },
        { page: '1' },
        { page: undefined },
        { page: null },
        { page: { $gt: 0 } },
        { page: {} },
        { page: [1] },
        { open: { in: ['true'] } },
        { folder: { prefix: 5 } },
        { orgId: ownOrg },
        { __proto__: null, constructor: 'x' },
        { folder: { in: Array(limits.whereValuesMax + 1).fill('x') } },
        { folder: 'x'.repeat(limits.fieldBytesMax + 1) },
      ] as never[]) {
        const field = Object.keys(where)[0]!
        for (const call of [
          () => passages.query('c', { text: 'x', where }),
          () => passages.remove('c', { where }),
          () => passages.count('c', where),
        ])
          assert.match(await refuses('INVALID_FIELD', call), new RegExp(`^${field}: `))
      }
      assert.equal(await passages.count('c'), 1)
    },
  )
}
