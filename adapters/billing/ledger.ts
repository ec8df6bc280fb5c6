// The ledger on any storage: each entry carries the balance after it, a unique (orgId, seq) is the
// compare-and-set, a unique (orgId, key) makes each happen once.
import { fault } from '#contracts/faults.ts'
import { defineAdapter } from '#ports/adapter.ts'
import type { Balance, Entry, Ledger } from '#ports/billing.ts'
import type { Clock } from '#ports/clock.ts'
import type { StorageEngine } from '#ports/storage.ts'
import type { Ask } from './ledger/operations.ts'
import { entries, entryOf } from './ledger/rows.ts'
import { createWriters } from './ledger/writers.ts'

function check(field: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0)
    throw fault('INVALID_FIELD', { field, why: 'a whole number, at least 0' })
}
export async function ledgerOn(storage: StorageEngine, clock: Clock): Promise<Ledger> {
  await storage.define(entries)
  const { submit, memory } = createWriters(storage, clock)
  const under = new Set<Promise<unknown>>()
  let closed = false
  const open = () => {
    if (closed) throw fault('UNAVAILABLE', { what: 'The ledger', why: 'it is closed' })
  }
  const put = async (
    orgId: string,
    ask: Omit<Ask, 'epoch' | 'resolve' | 'reject'>,
  ): Promise<Entry> => {
    open()
    check('amount', ask.amount)
    const written = submit(orgId, ask)
    under.add(written)
    return written.finally(() => under.delete(written))
  }
  return {
    async credit(orgId, { key, amount, reason }) {
      if (key === '' || /^(hold|end):/.test(key))
        throw fault('INVALID_FIELD', {
          field: 'key',
          why: 'keys that begin with hold: or end: belong to holds',
        })
      return put(orgId, { kind: 'credit', key, amount, reason })
    },
    hold: (orgId, { of, amount }) =>
      put(orgId, { kind: 'hold', key: `hold:${of}`, amount, reason: 'hold' }),
    capture: (orgId, { of, amount, reason }) =>
      put(orgId, { kind: 'capture', key: `end:${of}`, ends: `hold:${of}`, amount, reason }),
    release: (orgId, { of, reason }) =>
      put(orgId, { kind: 'release', key: `end:${of}`, ends: `hold:${of}`, amount: 0, reason }),
    async balance(orgId): Promise<Balance> {
      open()
      const { balance, held } = await memory.loadHead(orgId)
      return { balance, held, available: balance - held }
    },
    async entries(orgId, { after = 0, limit = 100 } = {}) {
      open()
      const { items } = await storage.find(entries, {
        where: { orgId, seq: { gt: after } },
        orderBy: ['seq', 'asc'],
        limit,
      })
      return items.map(entryOf)
    },
    async entry(orgId, key) {
      open()
      const row = await memory.find(orgId, key)
      return row && entryOf(row)
    },
    async ping() {
      open()
      await storage.ping()
    },
    async close() {
      closed = true
      await Promise.allSettled(under)
    },
  }
}

export default defineAdapter<Ledger>({
  port: 'billing',
  scheme: 'ledger',
  needs: ['storage'],
  open: ({ engine, clock }) => ledgerOn(engine<StorageEngine>('storage'), clock),
})
