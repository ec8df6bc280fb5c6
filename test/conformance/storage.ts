// What every storage promises. `reopen`: a second opening of the same place, given where data
// outlives the engine.
import assert from 'node:assert/strict'
import { refuses, type Test, withPlace } from './runner.ts'
import { changes, expiry, many } from './storage/changes.ts'
import { fleeting, ids, things, type Kit, type On, type Thing } from './storage/common.ts'
import { filters, orders } from './storage/queries.ts'

export function storageKit(test: Test, name: string, { place, survives }: Kit): void {
  const on: On = (title, run) =>
    test(
      `${name}: ${title}`,
      withPlace(place, async (engine, { clock }) => {
        await engine.define(things)
        await engine.define(fleeting)
        await run(engine, clock)
      }),
    )
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

function documents(on: On): void {
  on("a document comes back as it was given, and is nobody else's", async engine => {
    const doc: Thing = {
      id: 'a',
      name: 'Zoë \u0000 🦊',
      size: -0.5,
      on: false,
      free: { deep: [1, null, { x: 'y' }] },
      list: [],
    }
    await engine.insert(things, doc)
    const first = await engine.get(things, 'a')
    assert.deepEqual(first, doc)
    ;(first!.free as { deep: unknown[] }).deep.push('mine')
    doc.size = 9
    assert.equal(((await engine.get(things, 'a'))!.free as { deep: unknown[] }).deep.length, 3)
    assert.equal((await engine.get(things, 'a'))!.size, -0.5)
    assert.equal(await engine.get(things, 'b'), undefined)
  })
  on('calls take effect in the order in which they were made', async engine => {
    const inserted = engine.insert(things, { id: 'a', size: 1 })
    const updated = engine.update(things, 'a', { inc: { size: 1 } })
    const read = engine.get(things, 'a')
    const removed = engine.remove(things, 'a')
    const gone = engine.get(things, 'a')
    await inserted
    assert.deepEqual(
      [(await updated)?.size, (await read)?.size, await removed, await gone],
      [2, 2, true, undefined],
    )
  })
  on(
    'a document of exactly the limit is kept, one byte more is refused, at insert and at update',
    async engine => {
      const max = engine.limits.documentBytesMax
      // A scope's stamp takes a few bytes of the mebibyte that an adapter promises.
      assert.ok(max >= 1024 * 1024 - 128)
      const room = max - Buffer.byteLength(JSON.stringify({ id: 'a', name: '' }))
      await engine.insert(things, { id: 'a', name: 'x'.repeat(room) })
      await refuses('DOCUMENT_TOO_LARGE', () =>
        engine.insert(things, { id: 'b', name: 'x'.repeat(room + 1) }),
      )
      await refuses('DOCUMENT_TOO_LARGE', () =>
        engine.insert(things, { id: 'b', name: 'é'.repeat(room / 2 + 1) }),
      )
      await refuses('DOCUMENT_TOO_LARGE', () => engine.update(things, 'a', { set: { size: 1 } }))
      assert.deepEqual(Object.keys((await engine.get(things, 'a'))!), ['id', 'name'])
    },
  )
  on('a document without a text as its id is refused', async engine => {
    await refuses('INVALID_FIELD', () => engine.insert(things, { id: '' }))
    await refuses('INVALID_FIELD', () => engine.insert(things, { id: 5 as never }))
  })
}

function uniqueness(on: On): void {
  on('an id and a unique key are taken once, and nothing else is harmed', async engine => {
    await engine.insert(things, { id: 'before', size: 1 })
    await engine.insert(things, { id: 'a', team: 'o', name: 'n' })
    assert.match(await refuses('DUPLICATE', () => engine.insert(things, { id: 'a' })), /id/)
    assert.match(
      await refuses('DUPLICATE', () => engine.insert(things, { id: 'b', team: 'o', name: 'n' })),
      /team, name/,
    )
    await engine.insert(things, { id: 'b', team: 'o', name: 'm' })
    await refuses('DUPLICATE', () => engine.update(things, 'b', { set: { name: 'n', size: 7 } }))
    assert.deepEqual(await engine.get(things, 'b'), { id: 'b', team: 'o', name: 'm' })
    assert.equal(await engine.count(things), 3)
  })
  on(
    'a document without one of the fields is no rival, nor is one that holds null there',
    async engine => {
      for (const id of ['a', 'b']) await engine.insert(things, { id, team: 'o' })
      for (const id of ['c', 'd'])
        await engine.insert(things, { id, team: 'o', name: null as never })
      for (const id of ['e', 'f']) await engine.insert(things, { id, name: 'n' })
      assert.equal(await engine.count(things), 6)
    },
  )
  on('a key is free again when its document is removed or changed', async engine => {
    await engine.insert(things, { id: 'a', team: 'o', name: 'n' })
    await engine.update(things, 'a', { unset: ['name'] })
    await engine.insert(things, { id: 'b', team: 'o', name: 'n' })
    await engine.remove(things, 'b')
    await engine.insert(things, { id: 'c', team: 'o', name: 'n' })
  })
  on('of many that insert one key at once, one succeeds', async engine => {
    const tries = await Promise.allSettled(
      Array.from({ length: 20 }, (_, n) =>
        engine.insert(things, { id: `t${n}`, team: 'o', name: 'n' }),
      ),
    )
    assert.equal(tries.filter(({ status }) => status === 'fulfilled').length, 1)
  })
  on(
    'insertMany goes in order, stops at the first that fails, and says how far it came',
    async engine => {
      const { inserted, error } = await engine.insertMany(things, [
        { id: 'a' },
        { id: 'b' },
        { id: 'a' },
        { id: 'c' },
      ])
      assert.equal(inserted, 2)
      await refuses('DUPLICATE', () => Promise.reject(error!))
      assert.deepEqual(await ids(engine, {}), ['a', 'b'])
      const bad = await engine.insertMany(things, [{ id: 'd' }, { id: '' }])
      assert.equal(bad.inserted, 1)
      assert.deepEqual(await engine.insertMany(things, []), { inserted: 0 })
    },
  )
  on(
    'a unique key declared later is refused where the documents break it, and enforced ' +
      'where they do not',
    async engine => {
      await engine.insertMany(things, [
        { id: 'a', team: 'o', free: 'x' },
        { id: 'b', team: 'o', free: 'x' },
        { id: 'c', team: 'p', free: 'y' },
      ])
      await refuses('DUPLICATE', () =>
        engine.define({ name: 'things', scope: 'platform', unique: [['free']] }),
      )
      await engine.insert(things, { id: 'd', free: 'y' })
      await engine.removeMany(things, { id: { in: ['b', 'd'] } })
      await engine.define({ name: 'things', scope: 'platform', unique: [['free']] })
      await refuses('DUPLICATE', () => engine.insert(things, { id: 'e', free: 'y' }))
      await refuses('DUPLICATE', () => engine.insert(things, { id: 'f', free: 'x' }))
      assert.equal(await engine.count(things, { free: 'y' }), 1)
    },
  )
}

function refusals(on: On): void {
  on('a collection that was never defined, or has no proper name, is refused', async engine => {
    await refuses('UNAVAILABLE', () =>
      engine.insert({ name: 'unknown', scope: 'platform' }, { id: 'a' }),
    )
    for (const name of ['Big', '1a', 'a-b', 'a"b', '', '$cmd'])
      await refuses('INVALID_FIELD', () => engine.define({ name, scope: 'platform' }))
    await refuses('INVALID_FIELD', () =>
      engine.define({ name: 'fine', scope: 'platform', index: [['a.b']] }),
    )
    for (const kind of ['unique', 'index'])
      await refuses('INVALID_FIELD', () =>
        engine.define({ name: 'fine', scope: 'platform', [kind]: [['a_b'], ['a', 'b']] }),
      )
  })
  on('defining the same again does nothing; more of it extends', async engine => {
    await engine.insertMany(things, [
      { id: 'a', free: 'x', size: 1 },
      { id: 'b', free: true },
      { id: 'c' },
    ])
    await Promise.all([engine.define(things), engine.define(things)])
    await engine.define({ ...things, index: [['free']] })
    assert.deepEqual(await ids(engine, { free: 'x' }), ['a'])
    assert.deepEqual(await ids(engine, { free: { exists: true } }), ['a', 'b'])
    await engine.insert(things, { id: 'd', free: 'x', size: 4 })
    assert.deepEqual(await ids(engine, { free: 'x' }), ['a', 'd'])
    assert.deepEqual(await ids(engine, { size: { gte: 1 } }), ['a', 'd'])
  })
  on('the collections that are kept are told, with all that was declared of them', async engine => {
    const told = Object.fromEntries((await engine.collections()).map(one => [one.name, one]))
    assert.deepEqual([told['things'], told['fleeting']], [things, fleeting])
    await engine.define({ ...things, index: [['free']] })
    const names = (await engine.collections()).map(({ name }) => name)
    assert.deepEqual([...names].sort(), names)
    assert.deepEqual((await engine.collections()).find(({ name }) => name === 'things')!.index, [
      ...things.index!,
      ['free'],
    ])
  })
  on('durable and ping resolve, with and without pending writes', async engine => {
    await engine.durable()
    const writes = Promise.all(
      Array.from({ length: 10 }, (_, n) => engine.insert(things, { id: `t${n}` })),
    )
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
      () => engine.define(fleeting),
      () => engine.collections(),
      () => engine.insert(things, { id: 'b' }),
      () => engine.insertMany(things, [{ id: 'b' }]),
      () => engine.get(things, 'a'),
      () => engine.find(things),
      () => engine.update(things, 'a', {}),
      () => engine.updateMany(things, {}, {}),
      () => engine.remove(things, 'a'),
      () => engine.removeMany(things, {}),
      () => engine.count(things),
      () => engine.durable(),
      () => engine.ping(),
    ]
    for (const call of calls) await refuses('UNAVAILABLE', call)
    await at.clean?.()
  })
  if (!survives) return
  test(`${name}: what was written stands after closing and opening, with its indexes`, async () => {
    const at = await place()
    const first = await at.open()
    await first.define(things)
    await first.insertMany(things, [
      { id: 'a', team: 'o', name: 'n', size: 5 },
      { id: 'b', free: 'x' },
    ])
    await first.close()
    const second = await at.open()
    assert.deepEqual(
      (await second.collections()).find(one => one.name === 'things'),
      things,
    )
    // What the program did not declare in between was not kept up to date, and is made good when it
    // is declared again.
    await second.define({ name: 'things', scope: 'platform', index: [['free']] })
    assert.equal(await second.count(things, { free: 'x' }), 1)
    await second.update(things, 'a', { set: { size: 6 } })
    await second.insert(things, { id: 'c', team: 'o', name: 'm', size: 7 })
    await second.close()
    const third = await at.open()
    await third.define(things)
    assert.deepEqual(await ids(third, { size: { gte: 6 } }), ['a', 'c'])
    await refuses('DUPLICATE', () => third.insert(things, { id: 'd', team: 'o', name: 'm' }))
    await third.close()
    await at.clean?.()
  })
  test(`${name}: a unique key holds after opening only as it is declared now`, async () => {
    const at = await place()
    const first = await at.open()
    await first.define({ ...things, unique: [['team', 'name'], ['free'], ['rank']] })
    await first.insert(things, { id: 'a', team: 'o', name: 'n', free: 'x', rank: 1 })
    await first.close()
    const second = await at.open()
    await second.define({
      ...things,
      unique: [
        ['team', 'name'],
        ['rank', 'id'],
      ],
      index: [['free'], ['rank']],
    })
    await second.insert(things, { id: 'b', free: 'x', rank: 1 })
    await refuses('DUPLICATE', () => second.insert(things, { id: 'c', team: 'o', name: 'n' }))
    assert.deepEqual(await ids(second, { free: 'x', rank: 1 }), ['a', 'b'])
    await second.close()
    await at.clean?.()
  })
}
