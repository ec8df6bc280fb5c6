// Documents that were written before ids lay within organisations: they are placed, whenever the
// process dies in between, and nobody misses one.
import assert from 'node:assert/strict'
import { isFault } from '#contracts/faults.ts'
import { collection, type Collection, type StorageEngine } from '#ports/storage.ts'
import { defineCollection } from '../../../kernel/scoped-ports/define.ts'
import { tenantStore } from '../../../kernel/scoped-ports/storage.ts'
import type { Test } from '../runner.ts'
import type { Place } from './common.ts'

type Setting = { id: string; orgId: string; slug?: string; size: number }
/** As it was declared before, and kept by the storage: over everybody's documents. */
const before: Collection<Setting> = {
  name: 'kit_settings',
  scope: 'tenant',
  unique: [['slug'], ['orgId', 'size']],
}
const now = collection<Setting>({
  name: 'kit_settings',
  scope: 'tenant',
  unique: [['slug'], ['orgId', 'size']],
})
const [ours, theirs] = [
  '00000000-0000-7000-8000-00000000000a',
  '00000000-0000-7000-8000-00000000000b',
]
const old: readonly Setting[] = [
  { id: 'settings', orgId: ours, slug: 'a', size: 1 },
  { id: 'other', orgId: theirs, slug: 'b', size: 1 },
  { id: `${theirs}/x`, orgId: theirs, size: 2 },
  { id: 'z', orgId: ours, size: 2 },
]
const of = (engine: StorageEngine, orgId: string) => tenantStore(engine, orgId, () => undefined)
const isDuplicate = (error: unknown) => isFault(error) && error.code === 'DUPLICATE'

/** Dies at the write of that number, before or after it has its effect. */
function dying(engine: StorageEngine, writesMax: number): StorageEngine {
  let writes = 0
  const counted =
    <A extends unknown[], T>(act: (...args: A) => Promise<T>) =>
    async (...args: A): Promise<T> => {
      if (writes >= writesMax) throw new Error('died')
      const done = await act(...args)
      if (++writes >= writesMax) throw new Error('died')
      return done
    }
  return {
    ...engine,
    define: spec => engine.define(spec),
    insert: counted((c, doc) => engine.insert(c, doc)) as StorageEngine['insert'],
    remove: counted((c, id, options) => engine.remove(c, id, options)),
  }
}
async function isPlaced(engine: StorageEngine): Promise<void> {
  const [mine, other] = [of(engine, ours), of(engine, theirs)]
  for (const doc of old) {
    assert.deepEqual(await of(engine, doc.orgId).get(now, doc.id), doc)
    assert.equal(await of(engine, doc.orgId === ours ? theirs : ours).get(now, doc.id), undefined)
  }
  assert.deepEqual(
    (await mine.find(now)).items.map(({ id }) => id),
    ['settings', 'z'],
  )
  assert.equal(await engine.count(now), old.length, 'each is there once')
  await assert.rejects(mine.insert(now, { id: 'more', slug: 'a', size: 7 } as Setting), isDuplicate)
  await assert.rejects(mine.insert(now, { id: 'settings', size: 8 } as Setting), isDuplicate)
  await other.insert(now, { id: 'settings', slug: 'a', size: 9 } as Setting)
  await other.remove(now, 'settings')
}

/** `place`: of a storage that survives being closed. */
export function placementKit(test: Test, name: string, place: () => Promise<Place>): void {
  test(`${name}: documents from before are placed, wherever the process died`, async () => {
    const kept = await place()
    for (let writes = 1; writes <= old.length * 2 + 1; writes++) {
      const first = await kept.open()
      await first.define(before)
      await first.removeMany(now, {})
      for (const doc of old) await first.insert(before, doc)
      await first.durable()
      await first.close()
      const second = await kept.open()
      const died = await defineCollection(dying(second, writes), now).then(
        () => false,
        error => (error as Error).message === 'died' || Promise.reject(error as Error),
      )
      assert.equal(died, writes <= old.length * 2)
      await second.durable()
      await second.close()
      const third = await kept.open()
      await defineCollection(third, now)
      await isPlaced(third)
      await defineCollection(third, now)
      await isPlaced(third)
      await third.close()
    }
    await kept.clean?.()
  })
  test(`${name}: a collection with ids in organisations does not become global`, async () => {
    const kept = await place()
    const engine = await kept.open()
    await defineCollection(engine, now)
    await of(engine, ours).insert(now, { id: 'a', size: 1 } as Setting)
    await assert.rejects(
      defineCollection(engine, { ...now, global: true }),
      /kit_settings holds ids that lie within organisations; it cannot become global/,
    )
    await engine.close()
    await kept.clean?.()
  })
}
