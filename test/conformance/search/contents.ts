// What moves a search index needs of it: everything that it holds, read out page by page, and the
// same wherever it is indexed again.
import assert from 'node:assert/strict'
import { seeded } from '#adapters/clock/manual/seeded.ts'
import type { CollectionSpec, Contents, Passage, SearchEngine } from '#ports/search.ts'
import { refuses } from '../runner.ts'
import { index, mixed, ownOrg, otherOrg, plain, type On } from './common.ts'

const orgs = [ownOrg, otherOrg]

async function allOf(engine: SearchEngine, collection: string, limit: number): Promise<Contents> {
  const passages: Passage[] = []
  for (;;) {
    const after = passages.at(-1)?.id
    const page = await engine.contents(ownOrg, collection, {
      limit,
      ...(after === undefined ? {} : { after }),
    })
    assert.ok(page.passages.length <= limit)
    if (page.passages.length === 0) return { ...page, passages }
    passages.push(...page.passages)
  }
}
const byBytes = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b))

export function contentsOf(on: On): void {
  on(
    'every collection of every organisation is listed once, in order, page by page',
    async (_, engine) => {
      // Some stand before the slash and its neighbours, some beyond the first 65,536 characters.
      const names = ['c', 'C', 'a/b', 'a', '!', '🦊', '\uffee', 'é "x"']
      const expected = orgs
        .flatMap(org => names.map(name => `${org}/${name}`))
        .filter(address => address !== `${ownOrg}/a`)
        .sort(byBytes)
      for (const org of orgs) for (const name of names) await engine.within(org).define(name, plain)
      await engine.within(ownOrg).drop('a')
      for (const limit of [1, 4, 100]) {
        const found: string[] = []
        for (
          let page: string[];
          (page = await engine.addresses({
            limit,
            ...(found.length > 0 ? { after: found.at(-1)! } : {}),
          })).length > 0;
          found.push(...page)
        )
          assert.ok(page.length <= limit)
        assert.deepEqual(
          found.filter(address => orgs.includes(address.split('/')[0]!)),
          expected,
        )
      }
    },
  )
  on(
    'a collection is read out whole, as it was given: its specification, and passage by ' +
      'passage in the order of their ids',
    async (passages, engine) => {
      const spec: CollectionSpec = {
        languages: ['en', 'de'],
        dimensions: 2,
        fields: { folder: 'string', page: 'number', open: 'boolean' },
      }
      const list: readonly Passage[] = [
        { id: 'b', text: 'replaced' },
        { id: 'a', text: '', fields: { folder: '', page: -0.1, open: false } },
        { id: ' ', text: 'Die Bücher lagen auf den Tischen in der großen Straße' },
        { id: '\uffee', text: 'running', language: 'de' },
        {
          id: '🦊',
          text: 'x \u0000 "🦊" \n',
          language: 'en',
          vector: [3, -4],
          fields: { folder: 'f "a" \\', page: 1e-7 },
        },
        { id: 'B', text: 'y', vector: [0, 1e30], fields: { page: 2 ** 53 - 1 } },
        { id: 'gone', text: 'z' },
      ]
      await passages.define('c', spec)
      await index(passages, 'c', list)
      await index(passages, 'c', [{ id: 'b', text: 'given later', fields: { open: true } }])
      await passages.remove('c', { ids: ['gone'] })
      const expected = [
        list[2]!,
        list[5]!,
        list[1]!,
        { id: 'b', text: 'given later', fields: { open: true } },
        list[3]!,
        list[4]!,
      ].map(passage => ({
        fields: {},
        ...passage,
        ...(passage.id === '🦊'
          ? { vector: [Math.fround(0.6), Math.fround(-0.8)] }
          : passage.id === 'B'
            ? { vector: [0, 1] }
            : {}),
      }))
      for (const limit of [1, 4, 1000])
        assert.deepEqual(
          await allOf(engine, 'c', limit),
          { spec, passages: expected },
          `${limit} at a time`,
        )
      await passages.define('bare', {})
      assert.deepEqual(await engine.contents(ownOrg, 'bare', { limit: 10 }), {
        spec: { languages: ['en'], dimensions: 0, fields: {} },
        passages: [],
      })
    },
  )
  on(
    'what was read out and is indexed again is read out the same, number by number',
    async (passages, engine) => {
      const next = seeded(23)
      const list = Array.from({ length: 400 }, (_, at): Passage => {
        const vector = [next() * 2 - 1, next() * 1e-3, next() * 2 - 1]
        const length = Math.hypot(...vector)
        // Every other one is nearly of length 1 when it is given.
        return {
          id: `p${at}`,
          text: `word${at}`,
          vector: at % 2 ? vector : vector.map(number => (number / length) * (1 + 2 ** -23)),
        }
      })
      await passages.define('c', mixed)
      await index(passages, 'c', list)
      const first = await allOf(engine, 'c', 100)
      const { spec } = first
      // In single precision a length is seldom 1 to the last digit: what is made 1 again each time
      // would never stand still.
      assert.ok(
        first.passages.some(({ vector }) =>
          vector!.some(
            (number, at) => number !== Math.fround(vector![at]! / Math.hypot(...vector!)),
          ),
        ),
      )
      await passages.define('again', spec)
      await index(passages, 'again', first.passages)
      assert.deepEqual(await allOf(engine, 'again', 1000), first)
      const asked = { text: 'word7 word70', vector: [0.1, 0.2, 0.3], limit: 50 }
      assert.deepEqual(
        (await passages.query('again', asked)).hits.map(({ id }) => id),
        (await passages.query('c', asked)).hits.map(({ id }) => id),
      )
    },
  )
  on(
    "contents are those of one organisation's collection, and no more than is allowed at a time",
    async (passages, engine) => {
      await passages.define('c', plain)
      await refuses('NOT_FOUND', () => engine.contents(otherOrg, 'c', { limit: 10 }))
      await refuses('NOT_FOUND', () => engine.contents(ownOrg, 'd', { limit: 10 }))
      for (const limit of [0, 1001, 1.5])
        await refuses('INVALID_FIELD', () => engine.contents(ownOrg, 'c', { limit }))
      for (const [org, name] of [
        ['../x', 'c'],
        [ownOrg, ''],
      ] as const)
        await refuses('INVALID_FIELD', () => engine.contents(org, name, { limit: 1 }))
    },
  )
}
