// Which passages are the best: computed here anew, so that adapters that agree with it agree with
// each other.
import assert from 'node:assert/strict'
import { seeded } from '#adapters/clock/manual/seeded.ts'
import type { Passage } from '#ports/search.ts'
import { idsOf, index, mixed, plain, type On } from './common.ts'

const vocabulary = [
  'river',
  'stone',
  'light',
  'wind',
  'copper',
  'salt',
  'cloud',
  'field',
  'glass',
  'ember',
  'north',
  'thread',
  'signal',
  'harbor',
]
/** Forty short ones of words that occur once in many or often in few. */
const documents: readonly Passage[] = (() => {
  const next = seeded(40)
  const word = () => vocabulary[Math.floor(next() ** 2 * vocabulary.length)]!
  return Array.from({ length: 40 }, (_, at) => ({
    id: `d${String(at).padStart(2, '0')}`,
    text: Array.from({ length: 3 + Math.floor(next() * 30) }, word).join(' '),
  }))
})()
const queries = [
  'river',
  'harbor',
  'signal thread',
  'river stone light',
  'ember ember north',
  'glass harbor river',
  'salt',
  'cloud field copper wind',
  'absent river',
  'thread north glass signal harbor',
]

/**
 * BM25 as Lucene computes it: k1 1.2, b 0.75, inverse document frequency ln(1 + (N - n + 0.5) / (n
 * + 0.5)).
 */
export function bm25(all: readonly Passage[], query: string): Map<string, number> {
  const texts = all.map(({ id, text }) => ({ id, words: text.split(' ') }))
  const average = texts.reduce((sum, { words }) => sum + words.length, 0) / texts.length
  const scores = new Map<string, number>()
  for (const term of new Set(query.split(' '))) {
    const n = texts.filter(({ words }) => words.includes(term)).length
    const idf = Math.log(1 + (texts.length - n + 0.5) / (n + 0.5))
    for (const { id, words } of texts) {
      const times = words.filter(word => word === term).length
      if (times > 0)
        scores.set(
          id,
          (scores.get(id) ?? 0) +
            (idf * times) / (times + 1.2 * (0.25 + (0.75 * words.length) / average)),
        )
    }
  }
  return scores
}
/** The order that the scores give, where nearly equal ones may stand either way. */
function inOrder(
  answered: readonly string[],
  scores: ReadonlyMap<string, number>,
  how: string,
): void {
  const expected = [...scores].sort((a, b) => b[1] - a[1]).slice(0, answered.length)
  assert.equal(answered.length, new Set(answered).size)
  for (const [at, id] of answered.entries())
    assert.ok(
      Math.abs((scores.get(id) ?? -Infinity) - expected[at]![1]) < 1e-5,
      `${how}: place ${at + 1} is ${id} with ${scores.get(id)}, not ` +
        `${expected[at]!.join(' with ')}`,
    )
}

const pointsOf = (count: number, dimensions: number, seed: number): Passage[] => {
  const next = seeded(seed)
  return Array.from({ length: count }, (_, at) => ({
    id: `p${String(at).padStart(4, '0')}`,
    text: `word${at % 7} all`,
    vector: Array.from({ length: dimensions }, () => next() * 2 - 1),
  }))
}
const cosine = (a: readonly number[], b: readonly number[]) => {
  const dot = (x: readonly number[], y: readonly number[]) =>
    x.reduce((sum, value, at) => sum + value * y[at]!, 0)
  return dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))
}

export function ranking(on: On): void {
  on('words are ranked by BM25, as computed here', async passages => {
    await passages.define('r', plain)
    await index(passages, 'r', documents)
    for (const text of queries) {
      const scores = bm25(documents, text)
      const { hits, more } = await passages.query('r', { text, limit: 40 })
      assert.equal(hits.length, scores.size, text)
      assert.equal(more, false)
      inOrder(
        hits.map(({ id }) => id),
        scores,
        text,
      )
      // Some multiply all of them by k1 + 1, which changes no order.
      const factor = hits.length > 0 ? hits[0]!.score / scores.get(hits[0]!.id)! : 1
      for (const { id, score } of hits)
        assert.ok(
          Math.abs(score / factor - scores.get(id)!) < 1e-4,
          `${text}: ${id} has ${score / factor}, not ${scores.get(id)}`,
        )
    }
  })
  on(
    'the same stays true after passages were replaced: what is gone weighs nothing',
    async passages => {
      await passages.define('r', plain)
      await index(
        passages,
        'r',
        documents.map(({ id }) => ({ id, text: 'harbor harbor old words that are gone soon' })),
      )
      await index(passages, 'r', documents)
      for (const text of queries)
        inOrder(await idsOf(passages, 'r', { text, limit: 40 }), bm25(documents, text), text)
    },
    ['exactStatistics'],
  )
  on('equal scores stand in the order of their ids', async passages => {
    await passages.define('r', mixed)
    await index(
      passages,
      'r',
      ['m', 'b', 'Z', 'é', 'a'].map(id => ({ id, text: 'same', vector: [1, 2, 3] })),
    )
    for (const query of [
      { text: 'same' },
      { vector: [1, 0, 0] },
      { text: 'same', vector: [1, 0, 0] },
    ])
      assert.deepEqual(await idsOf(passages, 'r', query), ['Z', 'a', 'b', 'm', 'é'])
  })
  on(
    'vectors are ranked by their cosine, whatever their length, and only those that reach ' +
      'cosineMin',
    async passages => {
      const points = pointsOf(400, 16, 7)
      const asked = points[17]!.vector!.map((value, at) => (at % 2 ? value : -value) * 1e-30)
      await passages.define('v', { ...plain, dimensions: 16 })
      await index(passages, 'v', [
        ...points.map(point => ({ ...point, vector: point.vector!.map(value => value * 1e20) })),
        { id: 'none', text: 'no vector' },
      ])
      const scores = new Map(points.map(({ id, vector }) => [id, cosine(vector!, asked)]))
      const { hits } = await passages.query('v', { vector: asked, limit: 100 })
      assert.equal(hits.length, 100)
      inOrder(
        hits.map(({ id }) => id),
        scores,
        'cosine',
      )
      for (const { id, score } of hits)
        assert.ok(
          Math.abs(score - scores.get(id)!) < 1e-4,
          `${id} has ${score}, not ${scores.get(id)}`,
        )
      const enough = [...scores.values()].filter(score => score >= 0.5).length
      assert.ok(enough > 1 && enough < 100)
      assert.equal(
        (await idsOf(passages, 'v', { vector: asked, limit: 100, cosineMin: 0.5 })).length,
        enough,
      )
      assert.deepEqual(await idsOf(passages, 'v', { vector: asked, cosineMin: 1 }), [])
    },
  )
  on(
    'a filter loses nothing: what it lets through is found, however many are better',
    async passages => {
      const spec = { ...plain, dimensions: 8, fields: { rare: 'boolean' } } as const
      const next = seeded(3)
      const many = Array.from({ length: 600 }, (_, at): Passage => {
        const isRare = at % 100 === 99
        return {
          id: `f${at}`,
          text: isRare ? `needle ${'other '.repeat(20)}` : 'needle needle needle',
          vector: Array.from(Array(8).keys(), n => (isRare ? -1 : 1) + (next() * (n + 1)) / 20),
          fields: { rare: isRare },
        }
      })
      await passages.define('f', spec)
      await index(passages, 'f', many)
      const vector = Array.from({ length: 8 }, () => 1)
      const expected = [99, 199, 299, 399, 499, 599].map(at => `f${at}`).sort()
      for (const query of [{ text: 'needle' }, { vector }, { text: 'needle', vector }])
        assert.deepEqual(
          (await idsOf(passages, 'f', { ...query, where: { rare: true } })).sort(),
          expected,
          JSON.stringify(query),
        )
    },
  )
  on('hybrid is the reciprocal rank fusion of both orders', async passages => {
    const points = pointsOf(60, 8, 11)
    const vector = pointsOf(1, 8, 5)[0]!.vector!
    await passages.define('h', { ...plain, dimensions: 8 })
    await index(
      passages,
      'h',
      points.map((point, at) => (at % 3 ? point : { id: point.id, text: point.text })),
    )
    const text = 'word3 word5'
    const lists = [
      await idsOf(passages, 'h', { mode: 'lexical', text, vector, limit: 100 }),
      await idsOf(passages, 'h', { mode: 'vector', text, vector, limit: 100 }),
    ]
    const scores = new Map<string, number>()
    for (const list of lists)
      for (const [at, id] of list.entries()) scores.set(id, (scores.get(id) ?? 0) + 1 / (61 + at))
    const { hits } = await passages.query('h', { mode: 'hybrid', text, vector, limit: 100 })
    assert.equal(hits.length, scores.size)
    assert.ok(
      lists[0]!.some(id => !lists[1]!.includes(id)) &&
        lists[1]!.some(id => !lists[0]!.includes(id)),
    )
    assert.deepEqual(
      hits.map(({ id }) => id),
      [...scores].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([id]) => id),
    )
    for (const { id, score } of hits) assert.ok(Math.abs(score - scores.get(id)!) < 1e-9)
  })
  on(
    'pages are parts of one order, and more says whether there are further ones',
    async passages => {
      await passages.define('p', { ...plain, dimensions: 4 })
      await index(passages, 'p', pointsOf(230, 4, 9))
      for (const query of [
        { text: 'all' },
        { vector: [1, 1, 1, 1] },
        { text: 'word2 all', vector: [1, 1, 1, 1] },
      ]) {
        const pages: string[] = []
        for (let offset = 0; offset < 200; offset += 50) {
          const { hits, more } = await passages.query('p', { ...query, offset, limit: 50 })
          pages.push(...hits.map(({ id }) => id))
          assert.equal(more, offset < 150)
        }
        assert.equal(new Set(pages).size, 200)
        assert.deepEqual(await idsOf(passages, 'p', { ...query, limit: 100 }), pages.slice(0, 100))
      }
    },
  )
}
