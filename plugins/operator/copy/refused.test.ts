// What a copy refuses, and the sentence that names the reason.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fault } from '#contracts/faults.ts'
import type { StorageEngine } from '#ports/storage.ts'
import type { Side } from './copy.ts'
import {
  bytesOf,
  copying,
  dying,
  empty,
  filled,
  Notes,
  orgId,
  type FullSide,
} from '../../../test/support/installation/copy-kit.ts'

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
  ] as readonly (readonly [string, (side: FullSide) => Promise<unknown>])[]) {
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

test.run()
