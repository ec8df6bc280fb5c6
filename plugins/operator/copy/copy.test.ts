// A copy in memory that is cut off at every write in turn, and what the comparison finds.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Passage } from '#ports/search.ts'
import { memorySearch } from '#adapters/search/memory.ts'
import {
  bytesOf,
  copying,
  dying,
  empty,
  filled,
  Notes,
  orgId,
  Short,
  type FullSide,
} from '../../../test/support/installation/copy-kit.ts'

test('cut off at any write, the same copy again ends whole', async () => {
  const from = await filled()
  const once = dying(empty())
  const { ok, compared } = await copying(from, once.side)
  assert.equal(
    [ok, compared.map(({ name, source, target }) => [name, source, target])],
    [
      true,
      [
        ['notes', 330, 330],
        ['short', 2, 2],
        ['', 503, 503],
        ['', 4, 4],
        ['', 231, 231],
      ],
    ],
  )
  assert.ok(once.writes() > 25, `${once.writes()} writes`)
  for (let at = 1; at <= once.writes(); at++) {
    const target = empty()
    await copying(from, dying(target, at).side).then(
      () => assert.unreachable(`write ${at} was none`),
      (error: Error) => assert.match(error.message, /the process is gone/),
    )
    // Every third is cut off once more.
    if (at % 3 === 0) await copying(from, dying(target, 4).side).catch(() => undefined)
    const again = await copying(from, target).catch((error: Error) =>
      assert.unreachable(`after write ${at}: ${error.message}`),
    )
    assert.equal([again!.ok, again!.compared], [true, compared], `after write ${at}`)
    await copying(from, target).then(
      () => assert.unreachable(),
      (error: Error) => assert.match(error.message, /^to: is not empty/),
    )
  }
})

test('of what differs in the end each is told, and the target stays marked', async () => {
  for (const [what, change, mended = false] of [
    ['documents of notes', ({ storage }) => storage.update(Notes, 'n1100', { set: { n: 5000 } })],
    ['documents of short', ({ storage }) => storage.remove(Short, 'a')],
    [
      'documents of more',
      async ({ storage }) => {
        await storage.define({ name: 'more', scope: 'platform' })
        await storage.insert({ name: 'more', scope: 'platform' }, { id: 'x' })
      },
    ],
    [
      'documents of notes',
      ({ storage }) => storage.define({ name: 'notes', scope: 'platform', index: [['until']] }),
    ],
    ['events', ({ eventlog }) => eventlog.append('s1', [{ type: 'x', data: 1 }])],
    ['events', ({ eventlog }) => eventlog.trim('s8', 1)],
    ['events', ({ eventlog }) => eventlog.trim('s6', 3)],
    ['events', ({ eventlog }) => eventlog.restore('new', 3, [])],
    ['blobs', ({ blobs }) => blobs.within(orgId).put(bytesOf('more'))],
    ['passages', ({ search }) => search.within(orgId).index('a/b', [{ id: 'more', text: 'more' }])],
    [
      'passages',
      ({ search }) =>
        search
          .within(orgId)
          .index('a/b', [
            { id: 'p7', text: 'passage 7', vector: [1, 7, 49.001], fields: { page: 7 } },
          ]),
    ],
    [
      'passages',
      ({ search }) =>
        search.within(orgId).index('a/b', [{ id: 'p8', text: 'passage 8', fields: { page: 8 } }]),
    ],
    ['passages', ({ search }) => search.within(orgId).define('more', {})],
    // Of a search index the same copy again mends what it meets on its way.
    ['passages', ({ search }) => search.within(orgId).define('empty', { languages: ['fr'] }), true],
    ['passages', ({ search }) => search.within(orgId).remove('a/b', { ids: ['p7'] }), true],
  ] as readonly (readonly [string, (side: FullSide) => Promise<unknown>, boolean?])[]) {
    const from = await filled()
    const to = empty()
    let changed: Promise<unknown> | undefined
    // Engines in memory have changed when the call returns, save what is put; an index works on one
    // call after the other.
    const { ok, why } = await copying(from, to, line => {
      if (line.startsWith('copied the search index')) changed = change(to)
    })
    await changed
    assert.equal([ok, why?.split('.')[0]], [false, `Source and target differ: ${what}`])
    await copying(from, to).then(answer => assert.is(answer.ok, mended))
  }
})

test('a resumed copy does not write arrived parts again; an empty index is copied', async () => {
  const from = await filled()
  const to = empty()
  const indexed: number[] = []
  const counting = {
    ...to.search,
    within: (org: string) => {
      const own = to.search.within(org)
      return {
        ...own,
        index: (name: string, list: readonly Passage[]) => {
          indexed.push(list.length)
          return own.index(name, list)
        },
      }
    },
  }
  await copying(from, to, line => {
    if (line.startsWith('copied the search')) throw new Error('cut off')
  }).then(
    () => assert.unreachable(),
    () => undefined,
  )
  await to.search.within(orgId).remove('a/b', { ids: ['p150'] })
  assert.is((await copying(from, { ...to, search: counting })).ok, true)
  assert.equal(indexed, [100], 'the part that had a hole')
  const none = await copying({ ...from, search: memorySearch() }, empty())
  assert.equal([none.ok, none.compared.at(-1)!.source], [true, 0])
})

test.run()
