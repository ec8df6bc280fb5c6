// A copy in memory that is cut off at every write in turn, and what the comparison finds.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { manualClock } from '#adapters/clock/manual.ts'
import { memoryBlobs } from '#adapters/blobs/memory.ts'
import { memoryEventlog } from '#adapters/eventlog/memory.ts'
import { memorySearch } from '#adapters/search/memory.ts'
import { memoryStorage } from '#adapters/storage/memory.ts'
import { fault } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import type { Passage } from '#ports/search.ts'
import { collection, type StorageEngine } from '#ports/storage.ts'
import { copyInstallation } from './command.ts'
import { copyAll, type Side } from './copy.ts'

type Whole = Required<Side>
const orgId = '01890000-0000-7000-8000-00000000000a'
const clock = manualClock()
const Notes = collection<{ id: string; n: number; until?: number }>({
  name: 'notes',
  scope: 'platform',
  unique: [['n']],
})
const Short = collection<{ id: string; until: number }>({
  name: 'short',
  scope: 'platform',
  expires: 'until',
})
const empty = (): Whole => ({
  storage: memoryStorage(clock),
  eventlog: memoryEventlog(),
  blobs: memoryBlobs(),
  search: memorySearch(),
})
const bytesOf = async function* (text: string) {
  yield Buffer.from(text)
}

async function filled(): Promise<Whole> {
  const side = empty()
  const { storage, eventlog, blobs, search } = side
  const ours = search.within(orgId)
  const theirs = search.within(`${orgId.slice(0, -1)}b`)
  await storage.define(Notes)
  await storage.define(Short)
  await storage.insertMany(
    Notes,
    Array.from({ length: 330 }, (_, n) => ({ id: `n${1000 + n}`, n })),
  )
  await storage.insertMany(Short, [
    { id: 'a', until: clock.now() + 10 },
    { id: 'b', until: clock.now() + 1e9 },
  ])
  for (let n = 0; n < 12; n++)
    await eventlog.append(
      `s${n}`,
      Array.from({ length: n === 3 ? 450 : n }, (_, at) => ({ type: 'x', data: at })),
    )
  await eventlog.trim('s4', 4)
  await eventlog.trim('s5', 2)
  await eventlog.rewrite('s6', { from: 2, through: 5 }, [{ seq: 5, type: 'y', data: null }])
  await eventlog.trim('s6', 1)
  for (const text of ['', 'a', 'b', 'c'.repeat(200_000)])
    await blobs.within(orgId).put(bytesOf(text))
  await ours.define('empty', {})
  await ours.define('a/b', { languages: ['en', 'fr'], dimensions: 3, fields: { page: 'number' } })
  await theirs.define('a/b', { languages: ['none'] })
  await ours.index(
    'a/b',
    Array.from({ length: 230 }, (_, n) => ({
      id: `p${n}`,
      text: `passage ${n}`,
      ...(n % 2 ? { vector: [1, n, n * n] } : { language: 'fr' as const }),
      fields: { page: n },
    })),
  )
  await theirs.index('a/b', [{ id: 'x', text: 'theirs' }])
  return side
}

/** Dies at the n-th write, half way where a write has parts; counts them otherwise. */
function dying(
  side: Whole,
  at = Infinity,
): { readonly side: Whole; readonly writes: () => number } {
  let writes = 0
  const dead = () => {
    throw new Error('the process is gone')
  }
  const watched = <T extends object>(engine: T, names: readonly string[]): T =>
    new Proxy(engine, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        return (...asked: unknown[]) => {
          const call = (...args: unknown[]) =>
            (value as (...args: unknown[]) => unknown).apply(target, args)
          if (name === 'within') return watched(call(...asked) as object, names)
          if (writes >= at) return dead()
          if (names.includes(String(name)) && ++writes === at) {
            if (name === 'index')
              return Promise.resolve(call(asked[0], (asked[1] as unknown[]).slice(0, 7))).then(dead)
            if (name === 'insertMany')
              return Promise.resolve(call(asked[0], (asked[1] as unknown[]).slice(0, 7))).then(dead)
            return name === 'restore' ? Promise.resolve(call(...asked)).then(dead) : dead()
          }
          return call(...asked)
        }
      },
    })
  return {
    side: {
      storage: watched(side.storage, ['insert', 'insertMany', 'define', 'remove']),
      eventlog: watched(side.eventlog, ['restore']),
      blobs: watched(side.blobs, ['put']),
      search: watched(side.search, ['define', 'index']),
    },
    writes: () => writes,
  }
}
const copying = (from: Side, to: Side, tell: (line: string) => void = () => undefined) =>
  copyAll({ from, to, described: 'the source', clock, tell })

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
  ] as readonly (readonly [string, (side: Whole) => Promise<unknown>, boolean?])[]) {
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

test('a copy refuses a source that is empty, half a copy, or not the one it began on', async () => {
  const refused = (from: Side, to: Side, sentence: RegExp) =>
    copying(from, to).then(
      () => assert.unreachable(),
      (error: Error) => assert.match(error.message, sentence),
    )
  const source = await filled()
  const half = empty()
  const other = await filled()
  await refused(empty(), empty(), /^from: holds no installation/)
  await refused(source, dying(half, 6).side, /the process is gone/)
  await refused(half, empty(), /^from: is itself an unfinished copy/)
  await other.storage.remove(Notes, 'n1000')
  await refused(other, half, /^to: is an unfinished copy of something else: the source/)
  for (const [what, fill] of [
    ['event streams', ({ eventlog }) => eventlog.append('a', [{ type: 'x', data: 1 }])],
    ['blobs', ({ blobs }) => blobs.within(orgId).put(bytesOf('x'))],
    ['collections of passages', ({ search }) => search.within(orgId).define('c', {})],
  ] as readonly (readonly [string, (side: Whole) => Promise<unknown>])[]) {
    const to = empty()
    await fill(to)
    await refused(source, to, new RegExp(`^to: is not empty: it holds ${what}`))
    assert.equal(await to.storage.collections(), [], 'nothing was written')
  }
})

test('a blob that was damaged in the source is named, and not copied on', async () => {
  const from = await filled()
  const [address] = await from.blobs.addresses({ limit: 1 })
  const damaged = new Proxy(from.blobs, {
    get: (target, name) =>
      name === 'within'
        ? (org: string) => ({
            ...target.within(org),
            get: (hash: string) =>
              address === `${org}/${hash}` ? bytesOf('other') : target.within(org).get(hash),
          })
        : (Reflect.get(target, name) as unknown),
  })
  await copying({ ...from, blobs: damaged }, empty()).then(
    () => assert.unreachable(),
    (error: Error) =>
      assert.ok(error.message.includes(`the source's blob ${address} is damaged`), error.message),
  )
})

test("what expires during the copy is copied, by the command's own clock", async () => {
  const from = await filled()
  const lines: string[] = []
  const own = manualClock(clock.now())
  let seen: Clock = own
  let advanced: Promise<void> | undefined
  const storages = [
    memoryStorage({ ...own, now: () => seen.now() }),
    memoryStorage({ ...own, now: () => seen.now() }),
  ]
  const sides = [...storages]
  await copying(from, { ...empty(), storage: storages[0]! })
  const tools: Parameters<typeof copyInstallation>[0] = {
    settings: { QUEUE_URL: 'storage:' },
    placeOf: (port, chosen) => (port === 'storage' ? chosen.STORAGE_URL! : 'memory:'),
    async bind(_, only, given = {}) {
      if (given['clock']) seen = given['clock'] as Clock
      const engine = only[0] === 'clock' ? own : sides.shift()
      return { engine: <T>() => engine as T, close: async () => undefined }
    },
    tell(line) {
      lines.push(line)
      if (line.startsWith('copied the documents')) advanced = own.advance(1000)
    },
  }
  const places = { from: 'one://user:hidden-word@here/a', to: 'two://there/b' }
  const { ok, compared, stays, from: told } = await copyInstallation(tools, places)
  assert.equal(
    [ok, compared.find(({ name }) => name === 'short')],
    [true, { ...compared.find(({ name }) => name === 'short')!, source: 2, target: 2, same: true }],
  )
  assert.ok(stays.includes('blobs memory:') && lines[0]!.startsWith('No process may serve'))
  assert.is(told, 'storage one://here/a', 'neither user nor password')
  await advanced
  seen = own
  assert.is(await storages[1]!.count(Short), 1, 'then it expires')
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

test('a passage that the target cannot take is told with its collection', async () => {
  const from = await filled()
  const to = empty()
  const full = fault('STORAGE_FULL', {})
  const search = {
    ...to.search,
    within: (org: string) => ({
      ...to.search.within(org),
      index: async () => ({ indexed: 0, errors: [{ at: 0, id: 'p0', error: full }] }),
    }),
  }
  await copying(from, { ...to, search }).then(
    () => assert.unreachable(),
    (error: Error) =>
      assert.ok(
        error.message.includes(`the target refuses a passage of ${orgId}/a/b: ${full.message}`),
        error.message,
      ),
  )
})

test('the search index moves if its place differs, else the copy says that it stays', async () => {
  const run = async (more: object) => {
    const sides = [await filled(), empty()]
    const opened: string[][] = []
    const tools: Parameters<typeof copyInstallation>[0] = {
      settings: { QUEUE_URL: 'storage:' },
      placeOf: (port, chosen) =>
        port === 'storage'
          ? chosen.STORAGE_URL!
          : (port === 'search' && chosen.SEARCH_URL) || 'memory:',
      async bind(_, only) {
        if (only[0] === 'clock')
          return { engine: <T>() => clock as T, close: async () => undefined }
        const side = sides[opened.push([...only]) - 1]!
        return {
          engine: <T>(name: string) => side[name as keyof Whole] as T,
          close: async () => undefined,
        }
      },
      tell: () => undefined,
    }
    const { compared, stays, to } = await copyInstallation(tools, {
      from: 'one:',
      to: 'two:',
      ...more,
    })
    return {
      opened,
      passages: compared.find(({ what }) => what === 'passages')?.target,
      stays: stays.includes('search memory:'),
      to,
    }
  }
  assert.equal(await run({}), {
    opened: [['storage'], ['storage']],
    passages: undefined,
    stays: true,
    to: 'storage two:',
  })
  for (const more of [
    { search_to: 'found://user:hidden-word@there/x' },
    { search_from: 'memory:', search_to: 'found://there/x' },
  ])
    assert.equal(await run(more), {
      opened: [
        ['storage', 'search'],
        ['storage', 'search'],
      ],
      passages: 231,
      stays: false,
      to: 'storage two:, search found://there/x',
    })
  assert.is((await run({ search_from: 'found:', search_to: 'found:' })).passages, undefined)
})

test('a document that the target cannot take is told with its collection', async () => {
  const from = await filled()
  const to = empty()
  const storage: StorageEngine = {
    ...to.storage,
    insertMany: async () => ({ inserted: 0, error: new Error('no room') }),
  }
  await copying(from, { ...to, storage }).then(
    () => assert.unreachable(),
    (error: Error) =>
      assert.is(
        error.message,
        'The copy is not available: the target refuses a document of notes: no room.',
      ),
  )
})

test.run()
