// Collections are apart by their organisation and by their whole name.
import assert from 'node:assert/strict'
import { searchLimits as limits } from '#ports/search.ts'
import { refuses } from '../runner.ts'
import { idsOf, index, mixed, otherOrg, plain, type On } from './common.ts'

export function organisations(on: On): void {
  on(
    "one organisation's collection is unknown to another, and weighs nothing there",
    async (ours, engine) => {
      const theirs = engine.within(otherOrg)
      await ours.define('c', mixed)
      await refuses('NOT_FOUND', () => theirs.query('c', { text: 'x' }))
      await refuses('NOT_FOUND', () => theirs.index('c', [{ id: 'a', text: 'x' }]))
      assert.deepEqual(await theirs.collections(), [])
      assert.equal(await theirs.drop('c'), false)
      const list = ['common secret', 'common', 'common rare word'].map((text, at) => ({
        id: `${at}`,
        text,
        vector: [1, at, 0],
      }))
      await index(ours, 'c', list)
      const before = await ours.query('c', { text: 'common rare' })
      await theirs.define('c', mixed)
      await index(
        theirs,
        'c',
        Array.from({ length: 100 }, (_, at) => ({
          id: `${at}`,
          text: 'common rare rare theirs',
          vector: [1, 0, 0],
        })),
      )
      assert.deepEqual(
        await ours.query('c', { text: 'common rare' }),
        before,
        'the scores are those of before',
      )
      assert.deepEqual(await idsOf(ours, 'c', { text: 'theirs' }), [])
      assert.deepEqual(await idsOf(theirs, 'c', { text: 'secret' }), [])
      assert.equal((await idsOf(ours, 'c', { vector: [1, 0, 0], limit: 100 })).length, 3)
      assert.equal(await theirs.remove('c', { where: {} }), 100)
      assert.equal(await ours.count('c'), 3)
      assert.equal(await theirs.drop('c'), true)
      assert.equal(await ours.count('c'), 3)
    },
  )
  on('collections with names that look alike are different ones', async passages => {
    const names = [
      'a',
      'A',
      'a/b',
      'a_b',
      'a-b',
      'a b',
      '*',
      '../a',
      'a,b',
      '中',
      'c_1',
      '"',
      'x'.repeat(limits.collectionNameMax),
    ]
    for (const [at, name] of names.entries()) {
      await passages.define(name, plain)
      await index(
        passages,
        name,
        Array.from({ length: at + 1 }, (_, n) => ({ id: `${n}`, text: 'x' })),
      )
    }
    for (const [at, name] of names.entries()) assert.equal(await passages.count(name), at + 1, name)
    assert.deepEqual(
      await passages.collections(),
      names.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    )
    assert.equal(await passages.drop('*'), true)
    assert.equal((await passages.collections()).length, names.length - 1)
  })
  on('an organisation whose name is not plain is refused', async (_, engine) => {
    for (const orgId of [
      '',
      '.',
      '..',
      '../x',
      'a/b',
      '*',
      'A',
      'a\0',
      'x'.repeat(65),
      'a b',
      undefined as never,
    ])
      await refuses('INVALID_FIELD', () => engine.within(orgId))
  })
}
