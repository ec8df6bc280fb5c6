// What is asked wrongly is refused or finds nothing, and an abort ends what is under way.
import assert from 'node:assert/strict'
import { searchLimits as limits } from '#ports/search.ts'
import { refuses, rejectsWith } from '../runner.ts'
import { idsOf, index, mixed, ownOrg, plain, type On } from './common.ts'

export function refusals(on: On): void {
  on('text is never syntax', async passages => {
    await passages.define('c', { languages: ['en'], dimensions: 3 })
    await index(passages, 'c', [
      { id: 'c', text: 'programs in C' },
      { id: 'c++', text: 'programs in C++' },
      { id: 'c#', text: 'programs in C#' },
      { id: 'near', text: 'NEAR AND OR NOT a house', vector: [1, 0, 0] },
    ])
    assert.deepEqual(await idsOf(passages, 'c', { text: 'C++' }), ['c++'])
    assert.deepEqual(await idsOf(passages, 'c', { text: 'c#' }), ['c#'])
    assert.deepEqual(await idsOf(passages, 'c', { text: 'c' }), ['c'])
    for (const text of [
      '"',
      '"" OR ""',
      '*',
      'prog*',
      'NEAR(house programs)',
      'terms:x',
      'x^2',
      '-x',
      '+x',
      'a AND',
      '(',
      ')',
      '{"match_all":{}}',
      "it's",
      "'; DROP TABLE p_1; --",
      '\\',
      '\u0000',
      '~',
      '/.*/',
      '_exists_:id',
      'AND',
      '\uffff',
      '🦊'.repeat(100),
    ]) {
      const found = await idsOf(passages, 'c', { text })
      assert.deepEqual(
        found,
        text === 'NEAR(house programs)'
          ? ['near', ...['c', 'c#', 'c++'].filter(id => found.includes(id))]
          : [],
        text,
      )
    }
    assert.equal(
      (
        await idsOf(passages, 'c', {
          text: Array.from({ length: 300 }, (_, at) => `w${at}`)
            .join(' ')
            .slice(0, limits.queryCharactersMax),
        })
      ).length,
      0,
    )
    assert.deepEqual(await idsOf(passages, 'c', { text: '"*', vector: [1, 0, 0] }), ['near'])
  })
  on(
    "a query that asks for too much, or for what is not there, is refused by the field's name",
    async passages => {
      await passages.define('c', mixed)
      await passages.define('words', plain)
      for (const [field, query] of [
        ['text', { text: 'x'.repeat(limits.queryCharactersMax + 1) }],
        ['text', { text: 5 }],
        ['text', { mode: 'lexical' }],
        ['text', { mode: 'hybrid', vector: [1, 0, 0] }],
        ['vector', {}],
        ['vector', { mode: 'vector', text: 'x' }],
        ['vector', { vector: [1] }],
        ['vector', { vector: [0, 0, 0] }],
        ['vector', { vector: [1, 0, NaN] }],
        ['mode', { mode: 'fuzzy', text: 'x' }],
        ['limit', { text: 'x', limit: 0 }],
        ['limit', { text: 'x', limit: limits.limitMax + 1 }],
        ['limit', { text: 'x', limit: 1.5 }],
        ['offset', { text: 'x', offset: -1 }],
        ['offset', { text: 'x', offset: limits.depthMax - 5, limit: 6 }],
        ['cosineMin', { vector: [1, 0, 0], cosineMin: 2 }],
      ] as unknown as readonly (readonly [string, never])[])
        assert.match(
          await refuses('INVALID_FIELD', () => passages.query('c', query)),
          new RegExp(`^${field}: `),
          JSON.stringify(query),
        )
      await refuses('INVALID_FIELD', () => passages.query('words', { vector: [1, 0, 0] }))
      await refuses('INVALID_FIELD', () =>
        passages.index(
          'c',
          Array.from({ length: limits.batchPassagesMax + 1 }, (_, at) => ({
            id: `${at}`,
            text: '',
          })),
        ),
      )
      await refuses('INVALID_FIELD', () =>
        passages.index(
          'c',
          Array.from({ length: 200 }, (_, at) => ({ id: `${at}`, text: 'x'.repeat(60_000) })),
        ),
      )
      await refuses('INVALID_FIELD', () => passages.remove('c', { ids: [''] }))
      await refuses('INVALID_FIELD', () =>
        passages.remove('c', { ids: Array(limits.batchPassagesMax + 1).fill('x') }),
      )
      assert.equal(await passages.count('c'), 0)
    },
  )
  on(
    'a specification that cannot be kept is refused, and so is a collection without a name',
    async passages => {
      for (const spec of [
        { languages: [] },
        { languages: ['xx'] },
        { languages: ['constructor'] },
        { dimensions: -1 },
        { dimensions: limits.dimensionsMax + 1 },
        { dimensions: 1.5 },
        { fields: { id: 'string' } },
        { fields: { 'a b': 'string' } },
        { fields: { a: 'date' } },
        {
          fields: Object.fromEntries(
            Array.from({ length: limits.fieldsMax + 1 }, (_, at) => [`f${at}`, 'string']),
          ),
        },
      ] as never[])
        await refuses('INVALID_FIELD', () => passages.define('c', spec))
      for (const name of ['', 'x'.repeat(limits.collectionNameMax + 1), 5 as never, '\ud800'])
        await refuses('INVALID_FIELD', () => passages.define(name, plain))
      assert.deepEqual(await passages.collections(), [])
    },
  )
  on(
    'a collection that was not defined, or was dropped, is not found; dropping it again is false',
    async (passages, engine) => {
      await passages.define('c', plain)
      await index(passages, 'c', [{ id: 'a', text: 'x' }])
      assert.equal(await passages.drop('c'), true)
      assert.equal(await passages.drop('c'), false)
      for (const call of [
        () => passages.index('c', [{ id: 'a', text: 'x' }]),
        () => passages.remove('c', { ids: ['a'] }),
        () => passages.query('c', { text: 'x' }),
        () => passages.count('c'),
        () => engine.contents(ownOrg, 'c', { limit: 1 }),
      ])
        await refuses('NOT_FOUND', call)
      await passages.define('c', plain)
      assert.equal(await passages.count('c'), 0)
    },
  )
  on('an abort stops a query and a load with its own reason', async passages => {
    await passages.define('c', plain)
    const reason = new Error('gone')
    const signal = AbortSignal.abort(reason)
    const controller = new AbortController()
    await rejectsWith(reason, () => passages.query('c', { text: 'x', signal }))
    await rejectsWith(reason, () => passages.index('c', [{ id: 'a', text: 'x' }], { signal }))
    const under = Array.from({ length: 5 }, () =>
      passages.index(
        'c',
        Array.from({ length: 200 }, (_, at) => ({ id: `${at}`, text: 'many words '.repeat(100) })),
        { signal: controller.signal },
      ),
    )
    const asked = passages.query('c', { text: 'x', signal: controller.signal })
    controller.abort(reason)
    await Promise.all([...under, asked].map(call => rejectsWith(reason, () => call)))
    await index(passages, 'c', [{ id: 'after', text: 'after' }])
    assert.deepEqual(await idsOf(passages, 'c', { text: 'after' }), ['after'])
  })
}
