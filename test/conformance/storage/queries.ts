// Filters, order and pages, where engines disagree most.
import assert from 'node:assert/strict'
import type { StorageEngine, Where } from '#ports/storage.ts'
import { refuses } from '../runner.ts'
import { ids, things, type On, type Thing } from './common.ts'

export function filters(on: On): void {
  const seed = (engine: StorageEngine) =>
    engine.insertMany(things, [
      { id: 'a', name: 'ab', size: 1, on: true, free: 'ab' },
      { id: 'b', name: 'abc', size: 2, on: false, free: 2 },
      { id: 'c', name: 'b', size: 10, free: true },
      { id: 'd', free: 1 },
      { id: 'e', free: { x: 1 } },
      { id: 'f', free: ['ab'] },
      { id: 'g', free: null },
      { id: 'h', free: '{"x":1}' },
    ])
  on('equality is of scalars, of the same type, and never matches what is absent', async engine => {
    await seed(engine)
    const cases: [Where, string[]][] = [
      [{ name: 'ab' }, ['a']],
      [{ size: 10 }, ['c']],
      [{ on: false }, ['b']],
      [{ on: true }, ['a']],
      [{ free: 'ab' }, ['a']],
      [{ free: 2 }, ['b']],
      [{ free: true }, ['c']],
      [{ free: 1 }, ['d']],
      [{ free: '2' }, []],
      [{ free: '{"x":1}' }, ['h']],
      [{ free: '["ab"]' }, []],
      [{ id: 'd' }, ['d']],
      [{ missing: 'x' }, []],
      [{ name: 'ab', size: 1 }, ['a']],
      [{ name: 'ab', size: 2 }, []],
      [{}, ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']],
    ]
    for (const [where, found] of cases)
      assert.deepEqual(await ids(engine, where), found, JSON.stringify(where))
  })
  on('in, ranges, prefix and exists', async engine => {
    await seed(engine)
    const cases: [Where, string[]][] = [
      [{ name: { in: ['ab', 'b', 'zz'] } }, ['a', 'c']],
      [{ name: { in: [] } }, []],
      [{ free: { in: ['ab', 2, true, false] } }, ['a', 'b', 'c']],
      [{ on: { in: [false] } }, ['b']],
      [{ size: { gt: 1 } }, ['b', 'c']],
      [{ size: { gte: 1, lt: 10 } }, ['a', 'b']],
      [{ size: { lte: 2 } }, ['a', 'b']],
      [{ name: { gt: 'ab' } }, ['b', 'c']],
      [{ free: { gte: 1 } }, ['b', 'd']],
      [{ free: { lt: 'b' } }, ['a']],
      [{ id: { gt: 'b', lte: 'd' } }, ['c', 'd']],
      [{ name: { prefix: 'ab' } }, ['a', 'b']],
      [{ name: { prefix: '' } }, ['a', 'b', 'c']],
      [{ free: { prefix: 'a' } }, ['a']],
      [{ id: { prefix: 'c' } }, ['c']],
      [{ name: { exists: true } }, ['a', 'b', 'c']],
      [{ on: { exists: false }, size: { exists: true } }, ['c']],
      [{ free: { exists: false } }, ['g']],
      [{ free: { exists: true }, id: { gt: 'd' } }, ['e', 'f', 'h']],
    ]
    for (const [where, found] of cases) {
      assert.deepEqual(await ids(engine, where), found, JSON.stringify(where))
      assert.equal(await engine.count(things, where), found.length, JSON.stringify(where))
    }
  })
  on('prefixes and order go by bytes of UTF-8', async engine => {
    const names = [
      'a',
      'a%b',
      'a_b',
      'ab',
      'B',
      'z',
      'é',
      'éa',
      '\ud7ff',
      '\ud7ffx',
      '\ue000',
      '\uffff',
      '\u{10000}',
      '🦊',
      '🦊🦊',
      '\u{10ffff}',
      '\u{10ffff}z',
    ]
    await engine.insertMany(
      things,
      names.map((name, n) => ({ id: `t${n}`, name, free: name })),
    )
    const sorted = [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    for (const field of ['name', 'free'] as const) {
      const { items } = await engine.find(things, { orderBy: [field, 'asc'] })
      assert.deepEqual(
        items.map(item => item[field]),
        sorted,
      )
      for (const prefix of ['a', 'a_', 'a%', 'é', '\ud7ff', '🦊', '\u{10ffff}', '\uffff']) {
        const found = await engine.find(things, {
          where: { [field]: { prefix } },
          orderBy: [field, 'asc'],
        })
        assert.deepEqual(
          found.items.map(item => item[field]),
          sorted.filter(name => name.startsWith(prefix)),
          prefix,
        )
      }
      assert.equal(await engine.count(things, { [field]: { gt: '\uffff' } }), 5)
    }
  })
  on('values that look like operators or statements are values', async engine => {
    const odd = [
      '$gt',
      '{"$ne":null}',
      "' OR 1=1 --",
      '"; DROP TABLE things',
      '%',
      '_',
      '*',
      '\\',
      '.*',
      '',
    ]
    await engine.insertMany(
      things,
      odd.map((name, n) => ({ id: `t${n}`, name, free: name })),
    )
    for (const [n, value] of odd.entries())
      for (const field of ['name', 'free'])
        assert.deepEqual(await ids(engine, { [field]: value }), [`t${n}`])
    assert.equal(await engine.count(things, { name: { prefix: '%' } }), 1)
  })
  on('a filter that is not one is refused rather than ignored', async engine => {
    const wrong = [
      { name: undefined },
      { name: null },
      { name: {} },
      { name: { $gt: 1 } },
      { name: ['a'] },
      { size: NaN },
      { name: { in: 'a' } },
      { name: { in: [null] } },
      { name: { prefix: 1 } },
      { name: { exists: 1 } },
      { name: { gt: null } },
      { 'na me': 1 },
      { 'a.b': 1 },
      { "n' OR 1": 1 },
      { name: { prefix: 'a', gt: 'b' } },
    ]
    for (const where of wrong as never[]) {
      for (const call of [
        () => engine.find(things, { where }),
        () => engine.count(things, where),
        () => engine.removeMany(things, where),
        () => engine.updateMany(things, where, {}),
        () => engine.update(things, 'a', {}, { if: where }),
        () => engine.remove(things, 'a', { if: where }),
      ])
        await refuses('INVALID_FIELD', call)
    }
  })
}

export function orders(on: On): void {
  const seed = (engine: StorageEngine) =>
    engine.insertMany(
      things,
      Array.from({ length: 25 }, (_, n) => ({
        id: `t${String(n).padStart(2, '0')}`,
        team: n % 2 ? 'o' : 'p',
        ...(n === 24 ? {} : { rank: n % 5, size: n, free: n % 3 }),
      })),
    )
  on(
    'pages follow each other without gap or repetition, in both directions, ties broken by id',
    async engine => {
      await seed(engine)
      for (const field of ['id', 'rank', 'free', 'size']) {
        for (const direction of ['asc', 'desc'] as const) {
          const whole = (await engine.find(things, { orderBy: [field, direction], limit: 1000 }))
            .items
          assert.equal(whole.length, field === 'id' ? 25 : 24)
          const sorted = [...whole].sort(
            (a, b) =>
              (direction === 'asc' ? 1 : -1) *
              (Number(a[field as 'rank'] ?? 0) - Number(b[field as 'rank'] ?? 0) ||
                (a.id < b.id ? -1 : 1)),
          )
          if (field !== 'id') assert.deepEqual(whole, sorted)
          const paged: Thing[] = []
          for (let after: string | undefined, more = true; more; more = after !== undefined) {
            const page = await engine.find(things, {
              orderBy: [field, direction],
              limit: 7,
              ...(after === undefined ? {} : { after }),
            })
            assert.ok(page.items.length > 0)
            paged.push(...page.items)
            after = page.next
          }
          assert.deepEqual(paged, whole)
        }
      }
    },
  )
  on('the last page has no next, even when it is full', async engine => {
    await seed(engine)
    const { items, next } = await engine.find(things, { limit: 25 })
    assert.equal(items.length, 25)
    assert.equal(next, undefined)
    assert.equal((await engine.find(things)).items.length, 25)
  })
  on('inserts and removals between two pages move nothing that stays', async engine => {
    await seed(engine)
    const query = { where: { team: 'o' }, orderBy: ['rank', 'asc'] as const, limit: 5 }
    const before = (await engine.find(things, { ...query, limit: 100 })).items.map(({ id }) => id)
    const first = await engine.find(things, query)
    await engine.insert(things, { id: 't00a', team: 'o', rank: 0 })
    await engine.remove(things, first.items.at(-1)!.id)
    const second = await engine.find(things, { ...query, limit: 100, after: first.next! })
    assert.deepEqual(
      [...first.items, ...second.items].map(({ id }) => id),
      before,
    )
  })
  on('texts, numbers and booleans as cursors', async engine => {
    await engine.insertMany(things, [
      { id: 'a', on: true, name: 'é"\\' },
      { id: 'b', on: false, name: '\u{10ffff}' },
      { id: 'c', on: true, name: '' },
      { id: 'd', on: false, name: 'z' },
    ])
    for (const field of ['on', 'name']) {
      const first = await engine.find(things, { orderBy: [field, 'asc'], limit: 2 })
      const second = await engine.find(things, {
        orderBy: [field, 'asc'],
        limit: 2,
        after: first.next!,
      })
      assert.equal(new Set([...first.items, ...second.items].map(({ id }) => id)).size, 4)
      assert.equal(second.next, undefined)
    }
  })
  on('a cursor that is not one, or of another order, is refused', async engine => {
    await seed(engine)
    const { next } = await engine.find(things, { orderBy: ['rank', 'asc'], limit: 2 })
    const forged = [
      '',
      'x',
      '!!',
      'bnVsbA',
      Buffer.from('[]').toString('base64url'),
      Buffer.from('["rank","asc",{},"x"]').toString('base64url'),
      Buffer.from('["rank","asc",1,2]').toString('base64url'),
    ]
    for (const after of forged)
      await refuses('CURSOR_INVALID', () =>
        engine.find(things, { orderBy: ['rank', 'asc'], after }),
      )
    await refuses('CURSOR_INVALID', () =>
      engine.find(things, { orderBy: ['rank', 'desc'], after: next! }),
    )
    await refuses('CURSOR_INVALID', () => engine.find(things, { after: next! }))
  })
  on('a limit outside 1 to 1000 is refused', async engine => {
    for (const limit of [0, -1, 1001, 1.5, NaN])
      await refuses('INVALID_FIELD', () => engine.find(things, { limit }))
    await refuses('INVALID_FIELD', () => engine.find(things, { orderBy: ['na me', 'asc'] }))
    await refuses('INVALID_FIELD', () => engine.find(things, { orderBy: ['name', 'up' as never] }))
  })
}
