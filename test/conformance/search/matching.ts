// What is listed instead of ranked: every passage that holds all words, in the order of their ids,
// to the last.
import assert from 'node:assert/strict'
import { searchLimits as limits, type MatchQuery, type Passages } from '#ports/search.ts'
import { scopeSearch } from '../../../kernel/scoped-ports/passages.ts'
import { index, mixed, ownOrg, otherOrg, plain, type On } from './common.ts'
import { refuses } from '../runner.ts'

const idsOf = async (passages: Pick<Passages, 'match'>, query: MatchQuery) =>
  (await passages.match('c', query)).hits.map(({ id }) => id)

export function matching(on: On): void {
  on(
    'a list holds every passage with all of the words, the last id first, page by page to the end',
    async passages => {
      await passages.define('c', plain)
      const ids = Array.from({ length: 350 }, (_, at) => `p${String(at).padStart(3, '0')}`)
      const odd = ids.filter((_, at) => at % 2).reverse()
      await index(
        passages,
        'c',
        ids.map((id, at) => ({ id, text: `common ${at % 2 ? 'Ödd' : 'even'} n${at}` })),
      )
      const found: string[] = []
      for (let more = true; more; ) {
        const page = await passages.match('c', {
          text: 'odd COMMON',
          limit: 40,
          ...(found.length > 0 ? { before: found.at(-1)! } : {}),
        })
        assert.deepEqual(
          page.hits.map(({ score, highlights }) => [score, highlights]),
          page.hits.map(() => [0, [[0, 6]]]),
        )
        found.push(...page.hits.map(({ id }) => id))
        more = page.more
      }
      assert.deepEqual(found, odd)
      assert.deepEqual(await idsOf(passages, { text: 'n7 odd' }), ['p007'])
      for (const text of ['n7 n9', 'even odd', 'absent', '', '…', 'common absent'])
        assert.deepEqual(await passages.match('c', { text }), { hits: [], more: false }, text)
      assert.deepEqual(
        await idsOf(passages, { text: 'common', where: { id: { prefix: 'p34' } }, limit: 3 }),
        ['p349', 'p348', 'p347'],
      )
      assert.deepEqual(
        await idsOf(passages, {
          text: 'odd',
          where: { id: { in: ['p001', 'p003', 'p004'] } },
          before: 'p003',
        }),
        ['p001'],
      )
    },
  )
  on(
    'a list filters by fields, sees what was replaced and removed, and knows the forms of words',
    async passages => {
      await passages.define('c', {
        languages: ['en', 'de'],
        fields: { page: 'number', open: 'boolean' },
      })
      const first = 'The children were running through the old libraries of the university'
      const second =
        'Die Bücher lagen auf den Tischen in der großen Straße, und niemand hat sie gelesen'
      await index(passages, 'c', [
        { id: 'a', text: first, fields: { page: 1, open: true } },
        { id: 'b', text: first, fields: { page: 2 } },
        { id: 'c', text: second, fields: { page: 3 } },
      ])
      assert.deepEqual(await idsOf(passages, { text: 'library runs' }), ['b', 'a'])
      assert.deepEqual(
        await idsOf(passages, { text: 'the library' }),
        ['b', 'a'],
        'a stop word asks for nothing',
      )
      assert.deepEqual(await idsOf(passages, { text: 'Buch STRASSE' }), ['c'])
      assert.deepEqual(await idsOf(passages, { text: 'library', where: { page: { lt: 2 } } }), [
        'a',
      ])
      assert.deepEqual(await idsOf(passages, { text: 'library', where: { open: true } }), ['a'])
      await index(passages, 'c', [{ id: 'a', text: second }])
      assert.deepEqual(await idsOf(passages, { text: 'library' }), ['b'])
      await passages.remove('c', { ids: ['b'] })
      assert.deepEqual(await idsOf(passages, { text: 'library' }), [])
    },
  )
  on('words that are everywhere are listed as others are', async passages => {
    await passages.define('c', plain)
    const count = 5400
    for (let at = 0; at < count; at += 900)
      await index(
        passages,
        'c',
        Array.from({ length: 900 }, (_, n) => ({
          id: `p${at + n}`,
          text: `all${(at + n) % 1000 ? '' : ' few'}`,
        })),
      )
    const expected = Array.from({ length: count }, (_, at) => `p${at}`)
      .sort()
      .reverse()
    assert.deepEqual(await idsOf(passages, { text: 'all', limit: 100 }), expected.slice(0, 100))
    assert.deepEqual(
      await idsOf(passages, {
        text: 'all',
        limit: 5,
        before: 'p2',
        where: { id: { prefix: 'p1' } },
      }),
      expected.filter(id => id.startsWith('p1')).slice(0, 5),
    )
    assert.deepEqual(
      await idsOf(passages, { text: 'all few', limit: 100 }),
      expected.filter(id => Number(id.slice(1)) % 1000 === 0),
    )
  })
  on("a list that cannot be meant is refused by the field's name", async passages => {
    await passages.define('c', mixed)
    for (const [field, query] of [
      ['text', { text: 5 }],
      ['text', { text: '\ud800' }],
      ['text', { text: 'x'.repeat(limits.queryCharactersMax + 1) }],
      ['limit', { text: 'x', limit: 0 }],
      ['limit', { text: 'x', limit: limits.limitMax + 1 }],
      ['before', { text: 'x', before: '' }],
      ['nowhere', { text: 'x', where: { nowhere: 1 } }],
    ] as unknown as readonly (readonly [string, never])[]) {
      assert.match(
        await refuses('INVALID_FIELD', () => passages.match('c', query)),
        new RegExp(`^${field}: `),
        JSON.stringify(query),
      )
    }
    await refuses('NOT_FOUND', () => passages.match('d', { text: 'x' }))
  })
  on('texts that were made to be slow are indexed and found like others', async passages => {
    await passages.define('c', { languages: ['none', 'en'] })
    const long = 60_000
    const hostile = [
      '\u0301'.repeat(long / 2),
      'a\u0301'.repeat(long / 3),
      'x'.repeat(long),
      "a'".repeat(long / 2),
      'c#'.repeat(long / 2),
      '中'.repeat(long / 3),
      '\u0e31'.repeat(long / 3),
      '👨‍👩‍👧'.repeat(long / 20),
      '\u0344\u0f73'.repeat(long / 6),
      '#'.repeat(long),
    ]
    await index(
      passages,
      'c',
      hostile.map((text, at) => ({ id: `h${at}`, text: `needle${at} ${text}` })),
    )
    for (const at of hostile.keys())
      assert.deepEqual(await idsOf(passages, { text: `needle${at}` }), [`h${at}`])
    assert.deepEqual(
      (await passages.match('c', { text: '\u0301'.repeat(limits.queryCharactersMax) })).more,
      false,
    )
  })
  on('what all share shows each organisation its own part', async (_, engine) => {
    const { shared } = scopeSearch(engine)
    const ours = shared({ orgId: ownOrg })
    const theirs = shared({ orgId: otherOrg })
    try {
      for (const each of [ours, theirs])
        await each.define('c', { ...plain, fields: { page: 'number' } })
      for (const [each, word] of [
        [ours, 'ours'],
        [theirs, 'theirs'],
      ] as const)
        assert.deepEqual(
          (
            await each.index(
              'c',
              [...'abc'].map((id, page) => ({ id, text: `both ${word}`, fields: { page } })),
            )
          ).errors,
          [],
        )
      for (const each of [ours, theirs])
        assert.deepEqual(
          (await each.match('c', { text: 'both' })).hits.map(({ id }) => id),
          ['c', 'b', 'a'],
        )
      assert.deepEqual(await idsOf(ours, { text: 'theirs' }), [])
      assert.deepEqual(await idsOf(ours, { text: 'both', before: 'c', where: { page: 1 } }), ['b'])
      assert.deepEqual(
        [
          await ours.count('c'),
          await ours.count('c', { id: 'a' }),
          await ours.count('c', { id: { in: ['a', 'z'] } }),
          await ours.count('c', { id: { prefix: 'b' } }),
        ],
        [3, 1, 1, 1],
      )
      await refuses('INVALID_FIELD', () =>
        ours.match('c', { text: 'both', where: { id: { gt: 'a' } } }),
      )
      await refuses('INVALID_FIELD', () =>
        ours.match('c', { text: 'both', before: 'x'.repeat(250) }),
      )
      assert.equal(await ours.remove('c', { where: {} }), 3)
      assert.deepEqual([await ours.count('c'), await theirs.count('c')], [0, 3])
      assert.equal(await theirs.remove('c', { ids: ['a'] }), 1)
    } finally {
      await engine.within('shared').drop('c')
    }
  })
}
