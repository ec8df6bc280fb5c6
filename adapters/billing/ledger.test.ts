import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { fault } from '#contracts/faults.ts'
import type { StorageEngine } from '#ports/storage.ts'
import { billingKit } from '../../test/conformance/billing.ts'
import { refuses } from '../../test/conformance/runner.ts'
import { sqlitePlace } from '../../test/support/databases/sqlite.ts'
import { manualClock } from '../clock/manual.ts'
import { systemClock } from '../clock/system.ts'
import { memoryStorage } from '../storage/memory.ts'
import { ledgerOn } from './ledger.ts'

const clock = systemClock()
const on = (storage: StorageEngine, clean: () => Promise<void>) => ({
  open: () => ledgerOn(storage, clock),
  another: () => ledgerOn(storage, clock),
  clean,
})

billingKit(test, 'ledger on memory', {
  place: async () => {
    const storage = memoryStorage(clock)
    return on(storage, () => storage.close())
  },
})
billingKit(test, 'ledger on sqlite', {
  place: async () => {
    const place = await sqlitePlace(clock)
    const storage = await place.open()
    return on(storage, () => storage.close().then(place.clean))
  },
})

test('after the storage lost writes, the next entry builds upon what stayed', async () => {
  const storage = memoryStorage(manualClock())
  let epoch = 0
  const ledger = await ledgerOn({ ...storage, epoch: () => epoch }, manualClock())
  await ledger.credit('o', { key: 'a', amount: 10, reason: 'x' })
  await ledger.credit('o', { key: 'b', amount: 5, reason: 'x' })
  await ledger.hold('o', { of: 'r', amount: 15 })
  // As a failed commit does: the last two are gone.
  await storage.removeMany({ name: 'ledger', scope: 'tenant' }, { seq: { gt: 1 } })
  epoch++
  assert.is((await ledger.credit('o', { key: 'c', amount: 0, reason: 'x' })).seq, 2)
  await refuses('INSUFFICIENT_CREDITS', () => ledger.hold('o', { of: 'r', amount: 15 }))
  await refuses('NOT_FOUND', () => ledger.release('o', { of: 'r', reason: 'x' }))
  assert.is((await ledger.hold('o', { of: 'r', amount: 10 })).seq, 3)
})

test('a storage that fails fails the operation; the next one reads the head again', async () => {
  const storage = memoryStorage(manualClock())
  let full = false
  const ledger = await ledgerOn(
    {
      ...storage,
      insertMany: async (...asked) =>
        full ? Promise.reject(fault('STORAGE_FULL')) : storage.insertMany(...asked),
    },
    manualClock(),
  )
  await ledger.credit('o', { key: 'a', amount: 10, reason: 'x' })
  full = true
  await refuses('STORAGE_FULL', () => ledger.credit('o', { key: 'b', amount: 5, reason: 'x' }))
  full = false
  assert.is((await ledger.credit('o', { key: 'b', amount: 5, reason: 'x' })).balanceAfter, 15)
})

test.run()
