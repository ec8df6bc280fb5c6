// Indexes that stand already with other options, or under another name.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  inDatabase,
  kept,
  takesTwo,
  wantAll,
} from '../../../test/support/databases/index-programs.ts'
import { mongoUrl } from '../../../test/support/databases/mongodb.ts'

if (mongoUrl === undefined)
  test.skip('mongodb: indexes that stand (MONGODB_URL is not set)', () => undefined)
else {
  test('an index of other options for the same fields or name is made anew', () =>
    inDatabase(async ({ db, program, names }) => {
      const first = await program()
      await wantAll(first, { unique: [['a', 'id']] })
      await first.close()
      const second = await program()
      await wantAll(second, { index: [['a', 'id'], ['c']] })
      assert.equal(await names(), ['i_a_id', 'i_c'])
      await db.collection(kept).createIndex({ x: 1 }, { name: 'u_d' })
      await db.collection(kept).createIndex({ e: 1 }, { name: 'u_e', unique: true })
      await wantAll(await program(), { unique: [['d'], ['e']], index: [['c'], ['a', 'id']] })
      assert.equal(
        [
          await takesTwo(db, { d: 1 }),
          await takesTwo(db, { x: 1 }),
          await takesTwo(db, { e: 1 }),
          await takesTwo(db, { d: null, e: null }),
        ],
        [false, true, false, true],
      )
    }))

  test("an operator's own index stays; it serves if it is the same, else it is named", () =>
    inDatabase(async ({ db, program, names }) => {
      await db.collection(kept).createIndexes([
        { key: { c: 1, _id: 1 }, name: 'theirs' },
        { key: { z: 1 }, name: 'more' },
      ])
      await wantAll(await program(), { index: [['c']] })
      assert.equal(await names(), ['more', 'theirs'])
      await db.collection(kept).createIndex({ a: 1 }, { name: 'plain' })
      const why = await wantAll(await program(), { unique: [['a']] }).then(
        () => 'it stands',
        (error: Error) => error.message,
      )
      // A server before 5.0 allows one index for each key; a later one keeps both.
      assert.ok(
        why === 'it stands' ||
          /^The index of a in c_things is not available: there is one by the name plain/.test(why),
        why,
      )
      assert.ok((await names()).includes('plain'))
    }))
}

test.run()
