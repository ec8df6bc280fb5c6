// A collection becomes another while it is asked and written to.
import assert from 'node:assert/strict'
import type { CollectionSpec, Passages } from '#ports/search.ts'
import { idsOf, index, ownOrg, plain, type On } from './common.ts'

const count = 600
const fill = (passages: Passages, collection: string) =>
  index(
    passages,
    collection,
    Array.from({ length: count }, (_, at) => ({
      id: `old${at}`,
      text: `stays runs n${at}`,
      vector: [1, at % 10, 0],
      fields: { page: at },
    })),
  )

export function changes(on: On): void {
  on(
    'defined again the same, nothing changes; with more, all is kept and the new can be used',
    async passages => {
      await passages.define('c', { languages: ['none'], dimensions: 3, fields: { page: 'number' } })
      await fill(passages, 'c')
      await passages.define('c', {
        fields: { page: 'number' },
        dimensions: 3,
        languages: ['none', 'none'],
      })
      assert.deepEqual(await idsOf(passages, 'c', { text: 'run' }), [])
      await passages.define('c', {
        languages: ['en'],
        dimensions: 3,
        fields: { page: 'number', folder: 'string' },
      })
      assert.equal(await passages.count('c'), count)
      assert.equal((await idsOf(passages, 'c', { text: 'run', limit: 100 })).length, 100)
      assert.equal(
        (await idsOf(passages, 'c', { vector: [1, 0, 0], where: { page: { lt: 30 } }, limit: 100 }))
          .length,
        30,
      )
      await index(passages, 'c', [{ id: 'new', text: 'x', fields: { folder: 'f' } }])
      assert.deepEqual(await idsOf(passages, 'c', { text: 'x', where: { folder: 'f' } }), ['new'])
    },
  )
  on(
    "with other dimensions vectors are forgotten, with another type a field's values; the " +
      'words stay',
    async passages => {
      await passages.define('c', {
        ...plain,
        dimensions: 3,
        fields: { page: 'number', open: 'boolean' },
      })
      await index(passages, 'c', [
        { id: 'a', text: 'x', vector: [1, 0, 0], fields: { page: 1, open: true } },
      ])
      await passages.define('c', { ...plain, dimensions: 2, fields: { page: 'string' } })
      assert.deepEqual(await idsOf(passages, 'c', { vector: [1, 0] }), [])
      const [hit] = (await passages.query('c', { text: 'x' })).hits
      assert.deepEqual([hit?.id, hit?.fields], ['a', {}])
      assert.equal(await passages.count('c', { page: { exists: true } }), 0)
      await index(passages, 'c', [{ id: 'a', text: 'x', vector: [1, 0], fields: { page: 'one' } }])
      assert.deepEqual(await idsOf(passages, 'c', { vector: [1, 0], where: { page: 'one' } }), [
        'a',
      ])
    },
  )
  on('while it changes, queries find everything and no write is lost', passages =>
    changing(passages, passages),
  )
  on(
    'while another process changes it, queries find everything and no write is lost',
    async (passages, _, place) => {
      const other = await place.open()
      try {
        await changing(passages, other.within(ownOrg))
      } finally {
        await other.close()
      }
    },
    ['another'],
  )
}

/** Rounds of the change; each side has begun before the other ends. */
async function changing(passages: Passages, changer: Passages): Promise<void> {
  const specs: readonly CollectionSpec[] = [
    { languages: ['none'], dimensions: 3, fields: { page: 'number' } },
    { languages: ['none'], dimensions: 3, fields: { page: 'number', folder: 'string' } },
    { languages: ['en'], dimensions: 3, fields: { page: 'number' } },
  ]
  await passages.define('c', specs[0]!)
  await fill(passages, 'c')
  const written: string[] = []
  const removed: string[] = []
  const added: string[] = []
  let isOver = false
  let asked = 0
  const write = async () => {
    for (let at = 0; !isOver || at < 20; at++) {
      await index(passages, 'c', [
        {
          id: `new${at}`,
          text: `stays written n${at}`,
          vector: [0, 1, at],
          fields: { page: 10_000 + at },
        },
        { id: `old${at}`, text: `stays rewritten`, fields: { page: at } },
      ])
      written.push(`new${at}`)
      assert.equal(await passages.remove('c', { ids: [`old${count - 1 - at}`] }), 1)
      removed.push(`old${count - 1 - at}`)
    }
  }
  // Several at a time, so that some are under way whenever one generation takes the place of
  // another.
  const add = async (lane: number) => {
    for (let at = 0; (!isOver || at < 5) && at < 200; at++) {
      await index(passages, 'c', [
        { id: `more${lane}-${at}`, text: 'stays more', fields: { page: 20_000 } },
      ])
      added.push(`more${lane}-${at}`)
    }
  }
  const ask = async () => {
    for (; !isOver || asked < 20; asked++) {
      assert.equal((await idsOf(passages, 'c', { text: 'stays', limit: 100 })).length, 100)
      assert.deepEqual(await idsOf(passages, 'c', { text: 'n300' }), ['old300'])
      assert.equal(
        (
          await idsOf(passages, 'c', {
            vector: [1, 0, 0],
            where: { page: { gte: 250, lt: 300 } },
            limit: 100,
          })
        ).length,
        50,
      )
    }
  }
  const change = async () => {
    for (const spec of specs.slice(1)) await changer.define('c', spec)
  }
  await Promise.all([
    change().finally(() => {
      isOver = true
    }),
    write(),
    ask(),
    ...[1, 2, 3].map(add),
  ])
  assert.ok(written.length >= 20 && written.length < 250, `${written.length} rounds of writing`)
  assert.equal(await passages.count('c'), count + written.length + added.length - removed.length)
  assert.equal(await passages.count('c', { id: { in: removed } }), 0)
  assert.equal(await passages.count('c', { id: { in: written } }), written.length)
  for (const id of [written[0]!, written.at(-1)!])
    assert.deepEqual(await idsOf(passages, 'c', { text: id.replace('new', 'n'), where: { id } }), [
      id,
    ])
  // Written while it became English, it is English: found by another form of its word.
  const all = [...written, ...added]
  for (let at = 0; at < all.length; at += 100)
    assert.deepEqual(
      (
        await idsOf(passages, 'c', {
          text: 'staying',
          where: { id: { in: all.slice(at, at + 100) } },
          limit: 100,
        })
      ).sort(),
      all.slice(at, at + 100).sort(),
    )
  assert.equal(
    (await idsOf(passages, 'c', { text: 'rewritten', limit: 100 })).length,
    Math.min(100, written.length),
  )
}
