import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { collection } from '#ports/storage.ts'
import { scopedStorage } from '../../test/conformance/scoped.ts'
import { sqlitePlace } from '../../test/support/databases/sqlite.ts'
import { placementKit } from '../../test/conformance/storage/placement.ts'
import { storageKit } from '../../test/conformance/storage.ts'
import { manualClock } from '../clock/manual.ts'

storageKit(test, 'sqlite', { survives: true, place: () => sqlitePlace(manualClock()) })
storageKit(test, 'sqlite, of a tenant', {
  survives: true,
  place: async () => {
    const place = await sqlitePlace(manualClock())
    return { ...place, open: async () => scopedStorage(await place.open()) }
  },
})
placementKit(test, 'sqlite', () => sqlitePlace(manualClock()))
test('sqlite: a field is taken out of many documents, whatever they hold', async () => {
  const place = await sqlitePlace(manualClock())
  const engine = await place.open()
  const things = collection<{ id: string; n?: number; pad?: unknown }>({
    name: 'things',
    scope: 'platform',
    index: [['n']],
  })
  await engine.define(things)
  const deep: unknown = JSON.parse(`${'['.repeat(1500)}${']'.repeat(1500)}`)
  const strange = '\ud800 é \u2028 "\\ \u0001'
  await engine.insertMany(things, [
    { id: 'a', n: 1, pad: strange },
    { id: 'b', pad: deep, n: 1 },
    { id: 'c', n: 2 },
  ])
  assert.equal(await engine.updateMany(things, { n: 1 }, { unset: ['n'] }), 2)
  assert.equal(await engine.get(things, 'a'), { id: 'a', pad: strange })
  assert.equal(
    JSON.stringify(await engine.get(things, 'b')),
    JSON.stringify({ id: 'b', pad: deep }),
  )
  assert.equal(await engine.count(things, { n: { gte: 0 } }), 1)
  await engine.close()
  await place.clean()
})
test.run()
