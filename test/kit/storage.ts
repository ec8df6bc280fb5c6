// What every storage promises. `reopen`: a second opening of the same place, given where data outlives the engine.
import assert from 'node:assert/strict'
import type { ManualClock } from '#adapters/clock/manual.ts'
import { collection, type Query, type StorageEngine, type Where } from '#ports/storage.ts'
import { refuses, type Test } from './runner.ts'

type Place = { readonly clock: ManualClock; open(): Promise<StorageEngine>; clean?(): Promise<void> }
type Kit = { place: () => Promise<Place>; /** What was durable is there after closing and opening again. */ survives: boolean }
type Thing = { id: string; orgId?: string; name?: string; size?: number; on?: boolean; free?: unknown; list?: unknown[]; until?: number; rank?: number }
type On = (title: string, run: (engine: StorageEngine, clock: ManualClock) => Promise<void>) => void

const things = collection<Thing>({ name: 'things', scope: 'platform', unique: [['orgId', 'name']], index: [['size'], ['orgId', 'rank'], ['on']] })
const fleeting = collection<Thing>({ name: 'fleeting', scope: 'platform', unique: [['name']], expires: 'until' })

export function storageKit(test: Test, name: string, { place, survives }: Kit): void {
  const on: On = (title, run) =>
    test(`${name}: ${title}`, async () => {
      const at = await place()
      const engine = await at.open()
      try {
        await engine.define(things)
        await engine.define(fleeting)
        await run(engine, at.clock)
      } finally {
        await engine.close()
        await at.clean?.()
      }
    })
  documents(on)
  uniqueness(on)
  filters(on)
  orders(on)
  changes(on)
  many(on)
  expiry(on)
  refusals(on)
  states(test, name, { place, survives })
}

const ids = async (engine: StorageEngine, where: Where, query: Query = {}) => (await engine.find(things, { ...query, where })).items.map(({ id }) => id)

function documents(on: On): void {
  on('a document comes back as it was given, and is nobody else\'s', async (engine) => {
    const doc: Thing = { id: 'a', name: 'Zoë \u0000 🦊', size: -0.5, on: false, free: { deep: [1, null, { x: 'y' }] }, list: [] }
    await engine.insert(things, doc)
    const first = await engine.get(things, 'a')
    assert.deepEqual(first, doc)
    ;(first!.free as { deep: unknown[] }).deep.push('mine')
    doc.size = 9
    assert.equal(((await engine.get(things, 'a'))!.free as { deep: unknown[] }).deep.length, 3)
    assert.equal((await engine.get(things, 'a'))!.size, -0.5)
    assert.equal(await engine.get(things, 'b'), undefined)
  })
  on('calls take effect in the order in which they were made', async (engine) => {
    const inserted = engine.insert(things, { id: 'a', size: 1 })
    const updated = engine.update(things, 'a', { inc: { size: 1 } })
    const read = engine.get(things, 'a')
    const removed = engine.remove(things, 'a')
    const gone = engine.get(things, 'a')
    await inserted
    assert.deepEqual([(await updated)?.size, (await read)?.size, await removed, await gone], [2, 2, true, undefined])
  })
  on('a document of exactly the limit is kept, one byte more is refused, at insert and at update', async (engine) => {
    const max = engine.limits.documentBytesMax
    assert.ok(max >= 1024 * 1024)
    const room = max - Buffer.byteLength(JSON.stringify({ id: 'a', name: '' }))
    await engine.insert(things, { id: 'a', name: 'x'.repeat(room) })
    await refuses('DOCUMENT_TOO_LARGE', () => engine.insert(things, { id: 'b', name: 'x'.repeat(room + 1) }))
    await refuses('DOCUMENT_TOO_LARGE', () => engine.insert(things, { id: 'b', name: 'é'.repeat(room / 2 + 1) }))
    await refuses('DOCUMENT_TOO_LARGE', () => engine.update(things, 'a', { set: { size: 1 } }))
    assert.deepEqual(Object.keys((await engine.get(things, 'a'))!), ['id', 'name'])
  })
  on('a document without a text as its id is refused', async (engine) => {
    await refuses('INVALID_FIELD', () => engine.insert(things, { id: '' }))
    await refuses('INVALID_FIELD', () => engine.insert(things, { id: 5 as never }))
  })
}

function uniqueness(on: On): void {
  on('an id and a unique key are taken once, and nothing else is harmed', async (engine) => {
    await engine.insert(things, { id: 'before', size: 1 })
    await engine.insert(things, { id: 'a', orgId: 'o', name: 'n' })
    assert.match(await refuses('DUPLICATE', () => engine.insert(things, { id: 'a' })), /id/)
    assert.match(await refuses('DUPLICATE', () => engine.insert(things, { id: 'b', orgId: 'o', name: 'n' })), /orgId, name/)
    await engine.insert(things, { id: 'b', orgId: 'o', name: 'm' })
    await refuses('DUPLICATE', () => engine.update(things, 'b', { set: { name: 'n', size: 7 } }))
    assert.deepEqual(await engine.get(things, 'b'), { id: 'b', orgId: 'o', name: 'm' })
    assert.equal(await engine.count(things), 3)
  })
  on('a document without one of the fields is no rival, nor is one that holds null there', async (engine) => {
    for (const id of ['a', 'b']) await engine.insert(things, { id, orgId: 'o' })
    for (const id of ['c', 'd']) await engine.insert(things, { id, orgId: 'o', name: null as never })
    for (const id of ['e', 'f']) await engine.insert(things, { id, name: 'n' })
    assert.equal(await engine.count(things), 6)
  })
  on('a key is free again when its document is removed or changed', async (engine) => {
    await engine.insert(things, { id: 'a', orgId: 'o', name: 'n' })
    await engine.update(things, 'a', { unset: ['name'] })
    await engine.insert(things, { id: 'b', orgId: 'o', name: 'n' })
    await engine.remove(things, 'b')
    await engine.insert(things, { id: 'c', orgId: 'o', name: 'n' })
  })
  on('of many that insert one key at once, one succeeds', async (engine) => {
    const tries = await Promise.allSettled(Array.from({ length: 20 }, (_, n) => engine.insert(things, { id: `t${n}`, orgId: 'o', name: 'n' })))
    assert.equal(tries.filter(({ status }) => status === 'fulfilled').length, 1)
  })
  on('insertMany goes in order, stops at the first that fails, and says how far it came', async (engine) => {
    const { inserted, error } = await engine.insertMany(things, [{ id: 'a' }, { id: 'b' }, { id: 'a' }, { id: 'c' }])
    assert.equal(inserted, 2)
    await refuses('DUPLICATE', () => Promise.reject(error!))
    assert.deepEqual(await ids(engine, {}), ['a', 'b'])
    const bad = await engine.insertMany(things, [{ id: 'd' }, { id: '' }])
    assert.equal(bad.inserted, 1)
    assert.deepEqual(await engine.insertMany(things, []), { inserted: 0 })
  })
  on('a unique key declared later is refused where the documents break it, and enforced where they do not', async (engine) => {
    await engine.insertMany(things, [{ id: 'a', orgId: 'o', free: 'x' }, { id: 'b', orgId: 'o', free: 'x' }, { id: 'c', orgId: 'p', free: 'y' }])
    await refuses('DUPLICATE', () => engine.define({ name: 'things', scope: 'platform', unique: [['free']] }))
    await engine.insert(things, { id: 'd', free: 'y' })
    await engine.removeMany(things, { id: { in: ['b', 'd'] } })
    await engine.define({ name: 'things', scope: 'platform', unique: [['free']] })
    await refuses('DUPLICATE', () => engine.insert(things, { id: 'e', free: 'y' }))
    await refuses('DUPLICATE', () => engine.insert(things, { id: 'f', free: 'x' }))
    assert.equal(await engine.count(things, { free: 'y' }), 1)
  })
}

function filters(on: On): void {
  const seed = (engine: StorageEngine) => engine.insertMany(things, [
    { id: 'a', name: 'ab', size: 1, on: true, free: 'ab' },
    { id: 'b', name: 'abc', size: 2, on: false, free: 2 },
    { id: 'c', name: 'b', size: 10, free: true },
    { id: 'd', free: 1 },
    { id: 'e', free: { x: 1 } },
    { id: 'f', free: ['ab'] },
    { id: 'g', free: null },
    { id: 'h', free: '{"x":1}' },
  ])
  on('equality is of scalars, of the same type, and never matches what is absent', async (engine) => {
    await seed(engine)
    const cases: [Where, string[]][] = [
      [{ name: 'ab' }, ['a']], [{ size: 10 }, ['c']], [{ on: false }, ['b']], [{ on: true }, ['a']], [{ free: 'ab' }, ['a']], [{ free: 2 }, ['b']],
      [{ free: true }, ['c']], [{ free: 1 }, ['d']], [{ free: '2' }, []], [{ free: '{"x":1}' }, ['h']], [{ free: '["ab"]' }, []], [{ id: 'd' }, ['d']], [{ missing: 'x' }, []],
      [{ name: 'ab', size: 1 }, ['a']], [{ name: 'ab', size: 2 }, []], [{}, ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']],
    ]
    for (const [where, found] of cases) assert.deepEqual(await ids(engine, where), found, JSON.stringify(where))
  })
  on('in, ranges, prefix and exists', async (engine) => {
    await seed(engine)
    const cases: [Where, string[]][] = [
      [{ name: { in: ['ab', 'b', 'zz'] } }, ['a', 'c']], [{ name: { in: [] } }, []], [{ free: { in: ['ab', 2, true, false] } }, ['a', 'b', 'c']], [{ on: { in: [false] } }, ['b']],
      [{ size: { gt: 1 } }, ['b', 'c']], [{ size: { gte: 1, lt: 10 } }, ['a', 'b']], [{ size: { lte: 2 } }, ['a', 'b']], [{ name: { gt: 'ab' } }, ['b', 'c']],
      [{ free: { gte: 1 } }, ['b', 'd']], [{ free: { lt: 'b' } }, ['a']], [{ id: { gt: 'b', lte: 'd' } }, ['c', 'd']],
      [{ name: { prefix: 'ab' } }, ['a', 'b']], [{ name: { prefix: '' } }, ['a', 'b', 'c']], [{ free: { prefix: 'a' } }, ['a']], [{ id: { prefix: 'c' } }, ['c']],
      [{ name: { exists: true } }, ['a', 'b', 'c']], [{ on: { exists: false }, size: { exists: true } }, ['c']], [{ free: { exists: false } }, ['g']], [{ free: { exists: true }, id: { gt: 'd' } }, ['e', 'f', 'h']],
    ]
    for (const [where, found] of cases) {
      assert.deepEqual(await ids(engine, where), found, JSON.stringify(where))
      assert.equal(await engine.count(things, where), found.length, JSON.stringify(where))
    }
  })
  on('prefixes and order go by bytes of UTF-8', async (engine) => {
    const names = ['a', 'a%b', 'a_b', 'ab', 'B', 'z', 'é', 'éa', '\ud7ff', '\ud7ffx', '\ue000', '\uffff', '\u{10000}', '🦊', '🦊🦊', '\u{10ffff}', '\u{10ffff}z']
    await engine.insertMany(things, names.map((name, n) => ({ id: `t${n}`, name, free: name })))
    const sorted = [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    for (const field of ['name', 'free'] as const) {
      const { items } = await engine.find(things, { orderBy: [field, 'asc'] })
      assert.deepEqual(items.map((item) => item[field]), sorted)
      for (const prefix of ['a', 'a_', 'a%', 'é', '\ud7ff', '🦊', '\u{10ffff}', '\uffff']) {
        const found = await engine.find(things, { where: { [field]: { prefix } }, orderBy: [field, 'asc'] })
        assert.deepEqual(found.items.map((item) => item[field]), sorted.filter((name) => name.startsWith(prefix)), prefix)
      }
      assert.equal(await engine.count(things, { [field]: { gt: '\uffff' } }), 5)
    }
  })
  on('values that look like operators or statements are values', async (engine) => {
    const odd = ['$gt', '{"$ne":null}', "' OR 1=1 --", '"; DROP TABLE things', '%', '_', '*', '\\', '.*', '']
    await engine.insertMany(things, odd.map((name, n) => ({ id: `t${n}`, name, free: name })))
    for (const [n, value] of odd.entries()) for (const field of ['name', 'free']) assert.deepEqual(await ids(engine, { [field]: value }), [`t${n}`])
    assert.equal(await engine.count(things, { name: { prefix: '%' } }), 1)
  })
  on('a filter that is not one is refused rather than ignored', async (engine) => {
    const wrong = [{ name: undefined }, { name: null }, { name: {} }, { name: { $gt: 1 } }, { name: ['a'] }, { size: NaN }, { name: { in: 'a' } }, { name: { in: [null] } }, { name: { prefix: 1 } }, { name: { exists: 1 } }, { name: { gt: null } }, { 'na me': 1 }, { 'a.b': 1 }, { "n' OR 1": 1 }, { name: { prefix: 'a', gt: 'b' } }]
    for (const where of wrong as never[]) {
      for (const call of [() => engine.find(things, { where }), () => engine.count(things, where), () => engine.removeMany(things, where), () => engine.updateMany(things, where, {}), () => engine.update(things, 'a', {}, { if: where }), () => engine.remove(things, 'a', { if: where })])
        await refuses('INVALID_FIELD', call)
    }
  })
}

function orders(on: On): void {
  const seed = (engine: StorageEngine) => engine.insertMany(things, Array.from({ length: 25 }, (_, n) => ({ id: `t${String(n).padStart(2, '0')}`, orgId: n % 2 ? 'o' : 'p', ...(n === 24 ? {} : { rank: n % 5, size: n, free: n % 3 }) })))
  on('pages follow each other without gap or repetition, in both directions, ties broken by id', async (engine) => {
    await seed(engine)
    for (const field of ['id', 'rank', 'free', 'size']) {
      for (const direction of ['asc', 'desc'] as const) {
        const whole = (await engine.find(things, { orderBy: [field, direction], limit: 1000 })).items
        assert.equal(whole.length, field === 'id' ? 25 : 24)
        const sorted = [...whole].sort((a, b) => (direction === 'asc' ? 1 : -1) * (Number(a[field as 'rank'] ?? 0) - Number(b[field as 'rank'] ?? 0) || (a.id < b.id ? -1 : 1)))
        if (field !== 'id') assert.deepEqual(whole, sorted)
        const paged: Thing[] = []
        for (let after: string | undefined, more = true; more; more = after !== undefined) {
          const page = await engine.find(things, { orderBy: [field, direction], limit: 7, ...(after === undefined ? {} : { after }) })
          assert.ok(page.items.length > 0)
          paged.push(...page.items)
          after = page.next
        }
        assert.deepEqual(paged, whole)
      }
    }
  })
  on('the last page has no next, even when it is full', async (engine) => {
    await seed(engine)
    const { items, next } = await engine.find(things, { limit: 25 })
    assert.equal(items.length, 25)
    assert.equal(next, undefined)
    assert.equal((await engine.find(things)).items.length, 25)
  })
  on('inserts and removals between two pages move nothing that stays', async (engine) => {
    await seed(engine)
    const query = { where: { orgId: 'o' }, orderBy: ['rank', 'asc'] as const, limit: 5 }
    const before = (await engine.find(things, { ...query, limit: 100 })).items.map(({ id }) => id)
    const first = await engine.find(things, query)
    await engine.insert(things, { id: 't00a', orgId: 'o', rank: 0 })
    await engine.remove(things, first.items.at(-1)!.id)
    const second = await engine.find(things, { ...query, limit: 100, after: first.next! })
    assert.deepEqual([...first.items, ...second.items].map(({ id }) => id), before)
  })
  on('texts, numbers and booleans as cursors', async (engine) => {
    await engine.insertMany(things, [{ id: 'a', on: true, name: 'é"\\' }, { id: 'b', on: false, name: '\u{10ffff}' }, { id: 'c', on: true, name: '' }, { id: 'd', on: false, name: 'z' }])
    for (const field of ['on', 'name']) {
      const first = await engine.find(things, { orderBy: [field, 'asc'], limit: 2 })
      const second = await engine.find(things, { orderBy: [field, 'asc'], limit: 2, after: first.next! })
      assert.equal(new Set([...first.items, ...second.items].map(({ id }) => id)).size, 4)
      assert.equal(second.next, undefined)
    }
  })
  on('a cursor that is not one, or of another order, is refused', async (engine) => {
    await seed(engine)
    const { next } = await engine.find(things, { orderBy: ['rank', 'asc'], limit: 2 })
    const forged = ['', 'x', '!!', 'bnVsbA', Buffer.from('[]').toString('base64url'), Buffer.from('["rank","asc",{},"x"]').toString('base64url'), Buffer.from('["rank","asc",1,2]').toString('base64url')]
    for (const after of forged) await refuses('CURSOR_INVALID', () => engine.find(things, { orderBy: ['rank', 'asc'], after }))
    await refuses('CURSOR_INVALID', () => engine.find(things, { orderBy: ['rank', 'desc'], after: next! }))
    await refuses('CURSOR_INVALID', () => engine.find(things, { after: next! }))
  })
  on('a limit outside 1 to 1000 is refused', async (engine) => {
    for (const limit of [0, -1, 1001, 1.5, NaN]) await refuses('INVALID_FIELD', () => engine.find(things, { limit }))
    await refuses('INVALID_FIELD', () => engine.find(things, { orderBy: ['na me', 'asc'] }))
    await refuses('INVALID_FIELD', () => engine.find(things, { orderBy: ['name', 'up' as never] }))
  })
}

function changes(on: On): void {
  on('set, unset, inc, push and pull', async (engine) => {
    await engine.insert(things, { id: 'a', name: 'n', size: 1, list: ['x', 'y', 'x', 1] })
    const changed = await engine.update(things, 'a', { set: { orgId: 'o', id: 'other' }, unset: ['name', 'missing'], inc: { size: 2, rank: -1 }, pull: { list: 'x' } })
    assert.deepEqual(changed, { id: 'a', orgId: 'o', size: 3, rank: -1, list: ['y', 1] })
    const pushed = await engine.update(things, 'a', { push: { list: { deep: true }, free: 'first' }, pull: { nothing: 1 } })
    assert.deepEqual([pushed?.list, pushed?.free], [['y', 1, { deep: true }], ['first']])
    assert.deepEqual(await engine.get(things, 'a'), pushed)
    assert.equal(await engine.update(things, 'b', { set: { size: 1 } }), undefined)
  })
  on('indexes follow every change', async (engine) => {
    await engine.insert(things, { id: 'a', size: 1, on: true })
    await engine.update(things, 'a', { inc: { size: 1 }, set: { on: false } })
    assert.deepEqual([await engine.count(things, { size: 1 }), await engine.count(things, { size: 2 }), await engine.count(things, { on: false })], [0, 1, 1])
    await engine.update(things, 'a', { unset: ['size'] })
    assert.deepEqual([await engine.count(things, { size: 2 }), await engine.count(things, { size: { exists: true } })], [0, 0])
  })
  on('a change that does not fit the document is refused and leaves it whole', async (engine) => {
    await engine.insert(things, { id: 'a', name: 'n' })
    for (const change of [{ inc: { name: 1 } }, { push: { name: 1 } }, { inc: { size: NaN } }, { set: { 'a.b': 1 } }, { unset: ['$x'] }, { pull: { list: {} } }, { set: { __proto__x: 1 } }] as never[]) await refuses('INVALID_FIELD', () => engine.update(things, 'a', change))
    assert.deepEqual(await engine.get(things, 'a'), { id: 'a', name: 'n' })
  })
  on('of many conditional updates on one state, exactly one wins', async (engine) => {
    await engine.insert(things, { id: 'a', size: 0 })
    const tries = await Promise.all(Array.from({ length: 50 }, (_, n) => engine.update(things, 'a', { set: { size: 1, rank: n } }, { if: { size: 0 } })))
    const winners = tries.filter((doc) => doc !== undefined)
    assert.equal(winners.length, 1)
    assert.deepEqual(await engine.get(things, 'a'), winners[0])
    await Promise.all(Array.from({ length: 50 }, () => engine.update(things, 'a', { inc: { size: 1 } })))
    assert.equal((await engine.get(things, 'a'))?.size, 51)
  })
  on('a conditional removal asks first', async (engine) => {
    await engine.insert(things, { id: 'a', size: 1 })
    assert.equal(await engine.remove(things, 'a', { if: { size: 2 } }), false)
    assert.equal(await engine.remove(things, 'a', { if: { size: 1 } }), true)
    assert.equal(await engine.remove(things, 'a'), false)
  })
}

function many(on: On): void {
  on('updateMany and removeMany touch what matches, each document once', async (engine) => {
    await engine.insertMany(things, Array.from({ length: 450 }, (_, n) => ({ id: `t${n}`, size: n })))
    assert.equal(await engine.updateMany(things, { size: { lt: 420 } }, { inc: { size: 1 } }), 420)
    assert.equal(await engine.count(things, { size: 0 }), 0)
    assert.equal((await engine.get(things, 't0'))?.size, 1)
    assert.equal(await engine.removeMany(things, { size: { gte: 440 } }), 10)
    assert.equal(await engine.removeMany(things, {}), 440)
    assert.equal(await engine.count(things), 0)
  })
}

function expiry(on: On): void {
  on('a document past its expiry is never seen, and does not stand in the way', async (engine, clock) => {
    const until = clock.now() + 1000
    await engine.insertMany(fleeting, [{ id: 'a', name: 'n', until }, { id: 'b', name: 'm' }, { id: 'c', until: until + 5000 }])
    assert.equal(await engine.count(fleeting), 3)
    await clock.advance(1000)
    assert.equal(await engine.get(fleeting, 'a'), undefined)
    assert.deepEqual((await engine.find(fleeting)).items.map(({ id }) => id), ['b', 'c'])
    assert.equal(await engine.count(fleeting, { name: 'n' }), 0)
    assert.equal(await engine.update(fleeting, 'a', { set: { until: until + 9000 } }), undefined)
    assert.equal(await engine.remove(fleeting, 'a'), false)
    assert.equal(await engine.updateMany(fleeting, {}, { inc: { size: 1 } }), 2)
    await engine.insert(fleeting, { id: 'a', name: 'n', until: until + 100_000 })
    assert.equal((await engine.get(fleeting, 'a'))?.size, undefined)
    await clock.advance(200_000)
    assert.deepEqual((await engine.find(fleeting)).items.map(({ id }) => id), ['b'])
  })
}

function refusals(on: On): void {
  on('a collection that was never defined, or has no proper name, is refused', async (engine) => {
    await refuses('UNAVAILABLE', () => engine.insert({ name: 'unknown', scope: 'platform' }, { id: 'a' }))
    for (const name of ['Big', '1a', 'a-b', 'a"b', '', '$cmd']) await refuses('INVALID_FIELD', () => engine.define({ name, scope: 'platform' }))
    await refuses('INVALID_FIELD', () => engine.define({ name: 'fine', scope: 'platform', index: [['a.b']] }))
  })
  on('defining the same again does nothing; more of it extends', async (engine) => {
    await engine.insertMany(things, [{ id: 'a', free: 'x', size: 1 }, { id: 'b', free: true }, { id: 'c' }])
    await Promise.all([engine.define(things), engine.define(things)])
    await engine.define({ ...things, index: [['free']] })
    assert.deepEqual(await ids(engine, { free: 'x' }), ['a'])
    assert.deepEqual(await ids(engine, { free: { exists: true } }), ['a', 'b'])
    await engine.insert(things, { id: 'd', free: 'x', size: 4 })
    assert.deepEqual(await ids(engine, { free: 'x' }), ['a', 'd'])
    assert.deepEqual(await ids(engine, { size: { gte: 1 } }), ['a', 'd'])
  })
  on('durable and ping resolve, with and without pending writes', async (engine) => {
    await engine.durable()
    const writes = Promise.all(Array.from({ length: 10 }, (_, n) => engine.insert(things, { id: `t${n}` })))
    await engine.durable()
    await Promise.all([engine.durable(), engine.durable(), engine.ping(), writes])
  })
}

function states(test: Test, name: string, { place, survives }: Kit): void {
  test(`${name}: after closing, every call is refused; closing twice is allowed`, async () => {
    const at = await place()
    const engine = await at.open()
    await engine.define(things)
    const late = engine.insert(things, { id: 'a' })
    await Promise.all([engine.close(), engine.close(), late])
    await engine.close()
    const calls = [
      () => engine.define(fleeting), () => engine.insert(things, { id: 'b' }), () => engine.insertMany(things, [{ id: 'b' }]), () => engine.get(things, 'a'), () => engine.find(things),
      () => engine.update(things, 'a', {}), () => engine.updateMany(things, {}, {}), () => engine.remove(things, 'a'), () => engine.removeMany(things, {}), () => engine.count(things), () => engine.durable(), () => engine.ping(),
    ]
    for (const call of calls) await refuses('UNAVAILABLE', call)
    await at.clean?.()
  })
  if (!survives) return
  test(`${name}: what was written before closing is there after opening again, indexes and all`, async () => {
    const at = await place()
    const first = await at.open()
    await first.define(things)
    await first.insertMany(things, [{ id: 'a', orgId: 'o', name: 'n', size: 5 }, { id: 'b', free: 'x' }])
    await first.close()
    const second = await at.open()
    // What the program did not declare in between was not kept up to date, and is made good when it is declared again.
    await second.define({ name: 'things', scope: 'platform', index: [['free']] })
    assert.equal(await second.count(things, { free: 'x' }), 1)
    await second.update(things, 'a', { set: { size: 6 } })
    await second.insert(things, { id: 'c', orgId: 'o', name: 'm', size: 7 })
    await second.close()
    const third = await at.open()
    await third.define(things)
    assert.deepEqual(await ids(third, { size: { gte: 6 } }), ['a', 'c'])
    await refuses('DUPLICATE', () => third.insert(things, { id: 'd', orgId: 'o', name: 'm' }))
    await third.close()
    await at.clean?.()
  })
}
