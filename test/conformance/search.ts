// What every search adapter promises. `survives`: what was indexed is there after closing and
// opening again. `another`: two processes have the place open.
import assert from 'node:assert/strict'
import {
  searchLimits as limits,
  type Passage,
  type SearchEngine,
  type SearchQuery,
} from '#ports/search.ts'
import { asking, refuses, rejectsWith, type Lacking, type Test } from './runner.ts'
import { changes } from './search/changes.ts'
import {
  answerFrom,
  idsOf,
  index,
  mixed,
  ownOrg,
  otherOrg,
  plain,
  type On,
  type SearchNeed,
  type SearchPlace,
} from './search/common.ts'
import { contentsOf } from './search/contents.ts'
import { matching } from './search/matching.ts'
import { ranking } from './search/ranking.ts'

type Kit = Lacking<SearchNeed> & { place: () => Promise<SearchPlace>; survives: boolean }

const emptied = async (engine: SearchEngine) => {
  for (const org of [ownOrg, otherOrg])
    for (const name of await engine.within(org).collections()) await engine.within(org).drop(name)
}

export function searchKit(test: Test, name: string, { place, survives, ...lacking }: Kit): void {
  const ask = asking(test, lacking)
  const on: On = (title, run, needs = []) =>
    ask(`${name}: ${title}`, needs, async () => {
      const at = await place()
      const engine = await at.open()
      // An adapter that waits before another try keeps no process alive for that.
      const awake = setInterval(() => undefined, 1000)
      try {
        await run(engine.within(ownOrg), engine, at)
        await emptied(engine)
      } finally {
        clearInterval(awake)
        await engine.close()
        await at.clean?.()
      }
    })
  contents(on)
  filters(on)
  organisations(on)
  refusals(on)
  ranking(on)
  matching(on)
  changes(on)
  contentsOf(on)
  states(test, name, { place, survives })
}

function contents(on: On): void {
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

function filters(on: On): void {
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

function organisations(on: On): void {
  on(
    "one organisation's collection is unknown to another, and weighs nothing there",
    async (ours, engine) => {
      const theirs = engine.within(otherOrg)
      await ours.define('c', mixed)
      await refuses('NOT_FOUND', () => theirs.query('c', { text: 'x' }))
      await refuses('NOT_FOUND', () => theirs.index('c', [{ id: 'a', text: 'x' }]))
      assert.deepEqual(await theirs.collections(), [])
      assert.equal(await theirs.drop('c'), false)
      const list = ['common secret', 'common', 'common rare word'].map((text, at) => ({
        id: `${at}`,
        text,
        vector: [1, at, 0],
      }))
      await index(ours, 'c', list)
      const before = await ours.query('c', { text: 'common rare' })
      await theirs.define('c', mixed)
      await index(
        theirs,
        'c',
        Array.from({ length: 100 }, (_, at) => ({
          id: `${at}`,
          text: 'common rare rare theirs',
          vector: [1, 0, 0],
        })),
      )
      assert.deepEqual(
        await ours.query('c', { text: 'common rare' }),
        before,
        'the scores are those of before',
      )
      assert.deepEqual(await idsOf(ours, 'c', { text: 'theirs' }), [])
      assert.deepEqual(await idsOf(theirs, 'c', { text: 'secret' }), [])
      assert.equal((await idsOf(ours, 'c', { vector: [1, 0, 0], limit: 100 })).length, 3)
      assert.equal(await theirs.remove('c', { where: {} }), 100)
      assert.equal(await ours.count('c'), 3)
      assert.equal(await theirs.drop('c'), true)
      assert.equal(await ours.count('c'), 3)
    },
  )
  on('collections with names that look alike are different ones', async passages => {
    const names = [
      'a',
      'A',
      'a/b',
      'a_b',
      'a-b',
      'a b',
      '*',
      '../a',
      'a,b',
      '中',
      'c_1',
      '"',
      'x'.repeat(limits.collectionNameMax),
    ]
    for (const [at, name] of names.entries()) {
      await passages.define(name, plain)
      await index(
        passages,
        name,
        Array.from({ length: at + 1 }, (_, n) => ({ id: `${n}`, text: 'x' })),
      )
    }
    for (const [at, name] of names.entries()) assert.equal(await passages.count(name), at + 1, name)
    assert.deepEqual(
      await passages.collections(),
      names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    )
    assert.equal(await passages.drop('*'), true)
    assert.equal((await passages.collections()).length, names.length - 1)
  })
  on('an organisation whose name is not plain is refused', async (_, engine) => {
    for (const orgId of [
      '',
      '.',
      '..',
      '../x',
      'a/b',
      '*',
      'A',
      'a\0',
      'x'.repeat(65),
      'a b',
      undefined as never,
    ])
      await refuses('INVALID_FIELD', () => engine.within(orgId))
  })
}

function refusals(on: On): void {
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

function states(test: Test, name: string, { place, survives }: Kit): void {
  test(`${name}: closed, it refuses everything; opened again, it has what it had`, async () => {
    const at = await place()
    const engine = await at.open()
    await engine.ping()
    const passages = engine.within(ownOrg)
    await passages.define('c', mixed)
    await index(passages, 'c', [{ id: 'a', text: 'kept', vector: [1, 0, 0], fields: { page: 1 } }])
    await engine.ping()
    await engine.close()
    await engine.close()
    for (const call of [
      () => passages.define('c', mixed),
      () => passages.drop('c'),
      () => passages.collections(),
      () => passages.index('c', [{ id: 'a', text: 'x' }]),
      () => passages.remove('c', { ids: ['a'] }),
      () => passages.query('c', { text: 'x' }),
      () => passages.count('c'),
      () => engine.addresses({ limit: 1 }),
      () => engine.contents(ownOrg, 'c', { limit: 1 }),
      () => engine.ping(),
      () => engine.within(ownOrg),
    ])
      await refuses('UNAVAILABLE', call)
    const again = await at.open()
    const there = again.within(ownOrg)
    if (survives) {
      assert.deepEqual(
        await idsOf(there, 'c', { text: 'kept', vector: [1, 0, 0], where: { page: 1 } }),
        ['a'],
      )
      await there.define('c', mixed)
      assert.equal(await there.count('c'), 1)
    } else await refuses('NOT_FOUND', () => there.count('c'))
    await emptied(again)
    await again.close()
    await at.clean?.()
  })
}
