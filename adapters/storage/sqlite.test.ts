import { test } from 'uvu'
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
test.run()
