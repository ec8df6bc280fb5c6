// What was indexed comes back as it was given, and what cannot be indexed is told.
import assert from 'node:assert/strict'
import { searchLimits as limits, type Passage } from '#ports/search.ts'
import { answerFrom, idsOf, index, mixed, ownOrg, plain, type On } from './common.ts'

export function indexing(on: On): void {
  on(
    "a plugin's way: define, index, and find with what was asked for marked",
    async (_, engine) => {
      assert.deepEqual(
        await answerFrom(
          { tenant: ({ orgId }) => engine.within(orgId) },
          { orgId: ownOrg },
          'Which trains?',
        ),
        ['Travelling by train is paid for in first class. (train)'],
      )
    },
  )
  on('a passage comes back as it was given, whatever its id and its characters', async passages => {
    await passages.define('c', mixed)
    const list: Passage[] = [
      'a',
      'A',
      ' ',
      '../x',
      '"quoted"',
      "it's; DROP TABLE p_1",
      '中文',
      '🦊',
      '_all',
      'x'.repeat(limits.idBytesMax),
    ].map((id, at) => ({
      id,
      text: `needle \u0000 🦊 "x" \n ${at}`,
      vector: [at, 1, 0],
      fields: { folder: `f "${at}" \\`, page: at - 0.5, open: at % 2 === 0 },
    }))
    await index(passages, 'c', list)
    const { hits } = await passages.query('c', { text: 'needle', limit: 50 })
    assert.deepEqual(
      hits
        .map(({ id, text, fields, language }) => ({ id, text, fields, language }))
        .sort((a, b) => (a.text < b.text ? -1 : 1)),
      list.map(({ id, text, fields }) => ({ id, text, fields, language: 'none' })),
    )
    assert.equal(await passages.remove('c', { ids: list.map(({ id }) => id) }), list.length)
    assert.equal(await passages.count('c'), 0)
  })
  on(
    'a query sees what was indexed, replaced and removed before it, every time',
    async passages => {
      await passages.define('c', mixed)
      for (let at = 0; at < 8; at++) {
        await index(passages, 'c', [
          { id: 'a', text: `word${at}`, vector: [1, at, 0] },
          { id: `b${at}`, text: 'many' },
        ])
        assert.deepEqual(await idsOf(passages, 'c', { text: `word${at}` }), ['a'])
        assert.deepEqual(await idsOf(passages, 'c', { text: `word${at - 1}` }), [])
        assert.equal(await passages.count('c'), at + 2)
      }
      assert.equal(await passages.remove('c', { ids: ['a', 'b1', 'b1', 'unknown'] }), 2)
      assert.deepEqual(await idsOf(passages, 'c', { vector: [1, 0, 0] }), [])
      assert.equal((await idsOf(passages, 'c', { text: 'many' })).length, 7)
    },
  )
  on('many at once are all kept', async passages => {
    await passages.define('c', plain)
    const outcomes = await Promise.all(
      Array.from({ length: 8 }, (_, who) =>
        passages.index(
          'c',
          Array.from(Array(50).keys(), at => ({ id: `${who}-${at}`, text: `all w${who}` })),
        ),
      ),
    )
    assert.deepEqual(
      outcomes.map(({ indexed, errors }) => [indexed, errors.length]),
      Array(8).fill([50, 0]),
    )
    assert.equal(await passages.count('c'), 400)
    assert.equal((await idsOf(passages, 'c', { text: 'w3', limit: 100 })).length, 50)
  })
  on('what is wrong with one passage is told of it, and harms no other', async passages => {
    await passages.define('c', mixed)
    const bad: readonly Partial<Passage>[] = [
      { id: '' },
      { id: 'x'.repeat(limits.idBytesMax + 1) },
      { id: 5 as never },
      { text: 5 as never },
      { text: 'é'.repeat(limits.textBytesMax / 2 + 1) },
      { text: 'half \ud800' },
      { language: 'en' },
      { vector: [1, 2] },
      { vector: [1, 2, NaN] },
      { vector: [0, 0, 0] },
      { fields: { nowhere: 1 } },
      { fields: { page: 'one' } },
      { fields: { page: Infinity } },
      { fields: { open: 1 } },
      { fields: { folder: 'x'.repeat(limits.fieldBytesMax + 1) } },
      { fields: { folder: ['x'] as never } },
    ]
    const list = bad.flatMap(
      (part, at) =>
        [
          { id: `bad${at}`, text: 'bad', ...part },
          { id: `good${at}`, text: 'good' },
        ] as Passage[],
    )
    const { indexed, errors } = await passages.index('c', [
      ...list,
      { id: 'good0', text: 'better' },
    ])
    assert.equal(indexed, bad.length + 1)
    assert.deepEqual(
      errors.map(({ at }) => at),
      bad.map((_, at) => at * 2),
    )
    assert.deepEqual(
      errors.map(({ error }) => error.code),
      bad.map(({ text }) =>
        typeof text === 'string' && text.length > 100 ? 'DOCUMENT_TOO_LARGE' : 'INVALID_FIELD',
      ),
    )
    assert.match(errors[7]!.error.message, /^passages\[14\]\.vector: must hold 3 numbers/)
    assert.equal(await passages.count('c'), bad.length)
    assert.deepEqual(await idsOf(passages, 'c', { text: 'better' }), ['good0'])
    assert.deepEqual(await idsOf(passages, 'c', { text: 'bad' }), [])
  })
  on('highlights are the places of the words in the text as it was given', async passages => {
    await passages.define('c', { languages: ['en'] })
    const text =
      '🦊 Runners were RUNNING; they ran, run. The naïve C++ runner’s running-shoes: 東京都'
    await index(passages, 'c', [
      { id: 'a', text },
      { id: 'long', text: 'run '.repeat(500) },
    ])
    const marked = async (query: string) =>
      (await passages.query('c', { text: query })).hits
        .find(({ id }) => id === 'a')!
        .highlights.map(([start, end]) => text.slice(start, end))
    assert.deepEqual(await marked('runs the'), ['RUNNING', 'run', 'running'])
    assert.deepEqual(await marked('naive c++'), ['naïve', 'C++'])
    assert.deepEqual(await marked('東京都'), ['東京都'])
    assert.equal(
      (await passages.query('c', { text: 'run' })).hits.find(({ id }) => id === 'long')!.highlights
        .length,
      100,
    )
  })
}
