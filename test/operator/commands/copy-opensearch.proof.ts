// A search index from SQLite to the server that OPENSEARCH_URL names and back, killed on the way:
// where it ends is where it began.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { seeded } from '#adapters/clock/manual/seeded.ts'
import { sqliteSearch } from '#adapters/search/sqlite.ts'
import { openSearch } from '#adapters/search/opensearch.ts'
import { systemClock } from '#adapters/clock/system.ts'
import type { CollectionSpec, Passage, SearchEngine } from '#ports/search.ts'
import { copy, type CopyAnswer } from '../../support/installation/installation.ts'
import { opening } from '../../conformance/opening.ts'
import { freshPrefix, openSearchUrl } from '../../support/databases/opensearch.ts'
import { commandLine } from '../../support/process.ts'
import { index, ownOrg, otherOrg } from '../../conformance/search/common.ts'

const told = ({ compared }: CopyAnswer) =>
  compared
    .filter(({ what }) => what === 'passages')
    .map(({ source, target, source_sha256, target_sha256 }) => ({
      source,
      target,
      source_sha256,
      target_sha256,
    }))
const dimensions = 24
const words = [
  'river',
  'running',
  'Bücher',
  'houses',
  'glass',
  'kept',
  'seltener',
  'Straße',
  'library',
]
const spec: CollectionSpec = { languages: ['en', 'de'], dimensions, fields: { page: 'number' } }
const listOf = (count: number, seed: number): Passage[] => {
  const next = seeded(seed)
  return Array.from({ length: count }, (_, at) => ({
    id: `p${at}`,
    text: Array.from(
      { length: 5 + (at % 30) },
      () => words[Math.floor(next() * words.length)],
    ).join(' '),
    fields: { page: at },
    ...(at % 5 ? { vector: Array.from({ length: dimensions }, () => next() * 2 - 1) } : {}),
    ...(at % 7 ? {} : { language: 'de' as const }),
  }))
}
/** What people would find. */
async function answersOf(engine: SearchEngine) {
  const next = seeded(99)
  const vector = Array.from({ length: dimensions }, () => next() - 0.5)
  const asked = [
    { text: 'run book' },
    { text: 'library', where: { page: { lt: 300 } } },
    { vector },
    { vector, text: 'selten rivers', limit: 25 },
    { text: 'gone' },
  ]
  return Promise.all(
    [ownOrg, otherOrg].flatMap(org =>
      asked.map(query => engine.within(org).query('handbook', query)),
    ),
  )
}
const idsOf = (answers: Awaited<ReturnType<typeof answersOf>>) =>
  answers.map(({ hits }) =>
    hits.map(({ id, text, language, fields }) => ({ id, text, language, fields })),
  )

if (openSearchUrl === undefined)
  test.skip('storage copy: a search index to OpenSearch and back (OPENSEARCH_URL is not set)', () =>
    undefined)
else {
  const home = mkdtempSync(join(tmpdir(), 'agent-platform-copy-search-'))
  const place = (name: string) => join(home, name)
  const env = { DATA_DIR: place('live') }
  const { url } = freshPrefix()
  const clock = systemClock()
  const secret = (name: string) => process.env[name]
  const there = () => openSearch(opening(url.href, { clock, secret }))
  const at = async <T>(engine: SearchEngine, act: (engine: SearchEngine) => Promise<T>) =>
    act(engine).finally(() => engine.close())
  const out = [
    '--from',
    'sqlite:',
    '--to',
    `sqlite://${place('there.db')}`,
    '--blobs_to',
    `file:${place('blobs')}`,
    '--search_to',
    url.href,
  ]
  const back = [
    '--from',
    `sqlite://${place('there.db')}`,
    '--to',
    `sqlite://${place('back.db')}`,
    '--search_from',
    url.href,
    '--search_to',
    `sqlite://${place('back-search.db')}`,
  ]

  test('SQLite to OpenSearch and back, killed on the way: equal digests and answers', async () => {
    await commandLine(['admin', 'create-user', '--email', 'ann@example.org'], env)
    const before = await at(sqliteSearch({ path: place('live/search.db') }), async engine => {
      for (const [org, count] of [
        [ownOrg, 1500],
        [otherOrg, 300],
      ] as const) {
        await engine.within(org).define('handbook', spec)
        await engine.within(org).define('none/yet', {})
        await index(engine.within(org), 'handbook', listOf(count, count))
      }
      await engine.within(ownOrg).remove('handbook', { where: { page: { gte: 700, lt: 800 } } })
      return answersOf(engine)
    })
    assert.ok(
      before.filter(({ hits }) => hits.length > 0).length === 8,
      'the last of five finds nothing',
    )
    assert.is((await copy(out, env, { line: /copied the blobs/, ms: 700 })).code, null)
    const first = await copy(out, env)
    assert.equal(
      [first.code, first.answer.ok, first.answer.resumed],
      [0, true, true],
      first.err + JSON.stringify(first.answer),
    )
    assert.is(told(first.answer)[0]!.target, 1700)
    assert.match(first.answer.from, / search sqlite:$/)
    assert.equal(
      idsOf(await at(await there(), answersOf)),
      idsOf(before),
      'the server in between answers the same',
    )
    assert.match(
      (
        await copy(
          [...out.slice(0, 2), '--to', `sqlite://${place('other.db')}`, '--search_to', url.href],
          env,
        )
      ).answer.error ?? '',
      /^to: is not empty: it holds collections of passages/,
    )
    const second = await copy(back, env)
    assert.equal(
      [second.code, second.answer.ok],
      [0, true],
      second.err + JSON.stringify(second.answer),
    )
    assert.equal(told(second.answer), told(first.answer))
    assert.equal(await at(sqliteSearch({ path: place('back-search.db') }), answersOf), before)
  })

  test.after(async () => {
    await at(await there(), async engine => {
      for (const org of [ownOrg, otherOrg])
        for (const name of await engine.within(org).collections())
          await engine.within(org).drop(name)
    })
    rmSync(home, { recursive: true, force: true })
  })
}
test.run()
