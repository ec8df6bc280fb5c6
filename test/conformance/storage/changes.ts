// Changes, changes of many, and documents that expire.
import assert from 'node:assert/strict'
import { refuses } from '../runner.ts'
import { fleeting, things, type On } from './common.ts'

export function changes(on: On): void {
  on('set, unset, inc, push and pull', async engine => {
    await engine.insert(things, { id: 'a', name: 'n', size: 1, list: ['x', 'y', 'x', 1] })
    const changed = await engine.update(things, 'a', {
      set: { team: 'o', id: 'other' },
      unset: ['name', 'missing'],
      inc: { size: 2, rank: -1 },
      pull: { list: 'x' },
    })
    assert.deepEqual(changed, { id: 'a', team: 'o', size: 3, rank: -1, list: ['y', 1] })
    const pushed = await engine.update(things, 'a', {
      push: { list: { deep: true }, free: 'first' },
      pull: { nothing: 1 },
    })
    assert.deepEqual([pushed?.list, pushed?.free], [['y', 1, { deep: true }], ['first']])
    assert.deepEqual(await engine.get(things, 'a'), pushed)
    assert.equal(await engine.update(things, 'b', { set: { size: 1 } }), undefined)
  })
  on('indexes follow every change', async engine => {
    await engine.insert(things, { id: 'a', size: 1, on: true })
    await engine.update(things, 'a', { inc: { size: 1 }, set: { on: false } })
    assert.deepEqual(
      [
        await engine.count(things, { size: 1 }),
        await engine.count(things, { size: 2 }),
        await engine.count(things, { on: false }),
      ],
      [0, 1, 1],
    )
    await engine.update(things, 'a', { unset: ['size'] })
    assert.deepEqual(
      [
        await engine.count(things, { size: 2 }),
        await engine.count(things, { size: { exists: true } }),
      ],
      [0, 0],
    )
  })
  on('a change that does not fit the document is refused and leaves it whole', async engine => {
    await engine.insert(things, { id: 'a', name: 'n' })
    for (const change of [
      { inc: { name: 1 } },
      { push: { name: 1 } },
      { inc: { size: NaN } },
      { set: { 'a.b': 1 } },
      { unset: ['$x'] },
      { pull: { list: {} } },
      { set: { __proto__x: 1 } },
    ] as never[])
      await refuses('INVALID_FIELD', () => engine.update(things, 'a', change))
    assert.deepEqual(await engine.get(things, 'a'), { id: 'a', name: 'n' })
  })
  on('of many conditional updates on one state, exactly one wins', async engine => {
    await engine.insert(things, { id: 'a', size: 0 })
    const tries = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        engine.update(things, 'a', { set: { size: 1, rank: n } }, { if: { size: 0 } }),
      ),
    )
    const winners = tries.filter(doc => doc !== undefined)
    assert.equal(winners.length, 1)
    assert.deepEqual(await engine.get(things, 'a'), winners[0])
    await Promise.all(
      Array.from({ length: 50 }, () => engine.update(things, 'a', { inc: { size: 1 } })),
    )
    assert.equal((await engine.get(things, 'a'))?.size, 51)
  })
  on('a conditional removal asks first', async engine => {
    await engine.insert(things, { id: 'a', size: 1 })
    assert.equal(await engine.remove(things, 'a', { if: { size: 2 } }), false)
    assert.equal(await engine.remove(things, 'a', { if: { size: 1 } }), true)
    assert.equal(await engine.remove(things, 'a'), false)
  })
}

export function many(on: On): void {
  on('updateMany and removeMany touch what matches, each document once', async engine => {
    await engine.insertMany(
      things,
      Array.from({ length: 450 }, (_, n) => ({ id: `t${n}`, size: n })),
    )
    assert.equal(await engine.updateMany(things, { size: { lt: 420 } }, { inc: { size: 1 } }), 420)
    assert.equal(await engine.count(things, { size: 0 }), 0)
    assert.equal((await engine.get(things, 't0'))?.size, 1)
    assert.equal(
      await engine.updateMany(things, { size: { in: [1, 2] } }, { unset: ['size', 'name'] }),
      2,
    )
    assert.deepEqual(await engine.get(things, 't0'), { id: 't0' })
    assert.equal(await engine.count(things, { size: { lt: 4 } }), 1)
    assert.equal(await engine.updateMany(things, { id: 't0' }, { set: { size: 1 } }), 1)
    assert.equal(await engine.removeMany(things, { size: { gte: 440 } }), 10)
    assert.equal(await engine.removeMany(things, {}), 440)
    assert.equal(await engine.count(things), 0)
  })
}

export function expiry(on: On): void {
  on(
    'a document past its expiry is never seen, and does not stand in the way',
    async (engine, clock) => {
      const until = clock.now() + 1000
      await engine.insertMany(fleeting, [
        { id: 'a', name: 'n', until },
        { id: 'b', name: 'm' },
        { id: 'c', until: until + 5000 },
      ])
      assert.equal(await engine.count(fleeting), 3)
      await clock.advance(1000)
      assert.equal(await engine.get(fleeting, 'a'), undefined)
      assert.deepEqual(
        (await engine.find(fleeting)).items.map(({ id }) => id),
        ['b', 'c'],
      )
      assert.equal(await engine.count(fleeting, { name: 'n' }), 0)
      assert.equal(await engine.update(fleeting, 'a', { set: { until: until + 9000 } }), undefined)
      assert.equal(await engine.remove(fleeting, 'a'), false)
      assert.equal(await engine.updateMany(fleeting, {}, { inc: { size: 1 } }), 2)
      await engine.insert(fleeting, { id: 'a', name: 'n', until: until + 100_000 })
      assert.equal((await engine.get(fleeting, 'a'))?.size, undefined)
      await clock.advance(200_000)
      assert.deepEqual(
        (await engine.find(fleeting)).items.map(({ id }) => id),
        ['b'],
      )
    },
  )
}
