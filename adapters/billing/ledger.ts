// The ledger on any storage: each entry carries the balance after it, a unique (orgId, seq) is the
// compare-and-set, a unique (orgId, key) makes each happen once.
import { fault, hasCode } from '#contracts/faults.ts'
import { defineAdapter } from '#ports/adapter.ts'
import type { Balance, Entry, EntryKind, Ledger } from '#ports/billing.ts'
import type { Clock } from '#ports/clock.ts'
import { collection, type StorageEngine } from '#ports/storage.ts'
import { createLru } from '../_shared/lru.ts'

type Row = Entry & { readonly id: string; readonly orgId: string }
type Head = { readonly seq: number; readonly balance: number; readonly held: number }
type Ask = {
  /** Of the storage, when it was asked. */
  readonly epoch: number | undefined
  readonly kind: EntryKind
  readonly key: string
  /** The key of the hold that this ends. */
  readonly ends?: string
  readonly amount: number
  readonly reason: string
  readonly resolve: (entry: Entry) => void
  readonly reject: (error: unknown) => void
}
type Planned = { readonly ask: Ask; readonly row: Row }

const entries = collection<Row>({
  name: 'ledger',
  scope: 'tenant',
  unique: [
    ['orgId', 'seq'],
    ['orgId', 'key'],
  ],
})

const batchMax = 200
/**
 * Tries in a row that bring nothing forward, against other processes that write to the same
 * organisation.
 */
const attemptsMax = 50
const contentionMs = 5
const headsMax = 10_000
const holdsMax = 20_000

function check(field: string, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0)
    throw fault('INVALID_FIELD', { field, why: 'a whole number, at least 0' })
}
const entryOf = ({
  seq,
  key,
  kind,
  amount,
  held,
  balanceAfter,
  heldAfter,
  reason,
  at,
}: Row): Entry => ({ seq, key, kind, amount, held, balanceAfter, heldAfter, reason, at })

/**
 * What an operation changes, `hold` being what its hold set aside. Never more is taken than was
 * held.
 */
function effect(
  { kind, amount }: Ask,
  hold: number,
): { readonly amount: number; readonly held: number } {
  if (kind === 'credit') return { amount, held: 0 }
  if (kind === 'hold') return { amount: 0, held: amount }
  // Subtracted from 0, for the minus of 0 is another number to a comparison.
  return { amount: kind === 'capture' ? 0 - Math.min(amount, hold) : 0, held: 0 - hold }
}

/** Ends an operation whose key is already taken. */
function repeat(ask: Ask, row: Row, hold: number): void {
  const { amount, held } = effect(ask, hold)
  if (row.amount === amount && row.held === held) ask.resolve(entryOf(row))
  else ask.reject(fault('LEDGER_MISMATCH', { key: ask.key }))
}

/** What was read of the storage and may be remembered until the storage loses writes. */
function createMemory(storage: StorageEngine) {
  const heads = createLru<string, Head>(headsMax)
  const holds = createLru<string, number>(holdsMax)
  let epoch = storage.epoch?.()
  const keyed = (orgId: string, key: string) => `${orgId} ${key}`

  async function loadHolds(orgId: string, asks: readonly Ask[]): Promise<void> {
    const missing = new Set(
      asks.flatMap(({ ends }) =>
        ends === undefined || holds.get(keyed(orgId, ends)) !== undefined ? [] : [ends],
      ),
    )
    if (missing.size === 0) return
    const { items } = await storage.find(entries, {
      where: { orgId, key: { in: [...missing] } },
      limit: batchMax,
    })
    for (const { key, held } of items) holds.set(keyed(orgId, key), held)
  }
  async function loadHead(orgId: string): Promise<Head> {
    const {
      items: [last],
    } = await storage.find(entries, { where: { orgId }, orderBy: ['seq', 'desc'], limit: 1 })
    return last
      ? { seq: last.seq, balance: last.balanceAfter, held: last.heldAfter }
      : { seq: 0, balance: 0, held: 0 }
  }
  return {
    loadHolds,
    loadHead,
    head: (orgId: string) => heads.get(orgId),
    remember: (orgId: string, head: Head) => heads.set(orgId, head),
    forget: (orgId: string) => heads.delete(orgId),
    holdOf: (orgId: string, key: string) => holds.get(keyed(orgId, key)),
    held: (orgId: string, key: string, amount: number) => holds.set(keyed(orgId, key), amount),
    find: async (orgId: string, key: string) =>
      (await storage.find(entries, { where: { orgId, key }, limit: 1 })).items[0],
    /** False when writes were lost since the last time it was asked: nothing remembered holds. */
    stands(): boolean {
      const now = storage.epoch?.()
      if (now === epoch) return true
      epoch = now
      heads.clear()
      holds.clear()
      return false
    },
  }
}
type Memory = ReturnType<typeof createMemory>

type Plan = {
  readonly planned: Planned[]
  /** Not covered by what is known. */
  readonly doubtful: Ask[]
  /** The key comes a second time in this batch. */
  readonly later: Ask[]
}

/**
 * Computes one entry after the other upon the head. No await: what is known must not change between
 * here and the insert.
 */
function plan(orgId: string, head: Head, asks: readonly Ask[], memory: Memory, clock: Clock): Plan {
  const made: Plan = { planned: [], doubtful: [], later: [] }
  const holds = new Map<string, number>()
  const keys = new Set<string>()
  let { seq, balance, held } = head
  for (const ask of asks) {
    const hold =
      ask.ends === undefined ? 0 : (holds.get(ask.ends) ?? memory.holdOf(orgId, ask.ends))
    const uncovered = hold === undefined || (ask.kind === 'hold' && ask.amount > balance - held)
    if (keys.has(ask.key)) made.later.push(ask)
    else if (uncovered || !Number.isSafeInteger(balance + ask.amount)) made.doubtful.push(ask)
    else {
      const change = effect(ask, hold)
      balance += change.amount
      held += change.held
      keys.add(ask.key)
      if (ask.kind === 'hold') holds.set(ask.key, ask.amount)
      made.planned.push({
        ask,
        row: {
          id: clock.id(),
          orgId,
          seq: ++seq,
          key: ask.key,
          kind: ask.kind,
          ...change,
          balanceAfter: balance,
          heldAfter: held,
          reason: ask.reason,
          at: clock.now(),
        },
      })
    }
  }
  return made
}

/** Says no, unless the same was already written. */
async function refuse(orgId: string, ask: Ask, head: Head, memory: Memory): Promise<void> {
  const row = await memory.find(orgId, ask.key)
  if (row)
    return repeat(ask, row, ask.ends === undefined ? 0 : (memory.holdOf(orgId, ask.ends) ?? 0))
  if (ask.ends !== undefined) ask.reject(fault('NOT_FOUND', { what: 'hold' }))
  else if (ask.kind === 'hold')
    ask.reject(
      fault('INSUFFICIENT_CREDITS', { available: head.balance - head.held, needed: ask.amount }),
    )
  else
    ask.reject(fault('INVALID_FIELD', { field: 'amount', why: 'the balance would be too large' }))
}

/** Writes as many as it can; answers those that must be tried again. */
async function attempt(
  orgId: string,
  asks: readonly Ask[],
  storage: StorageEngine,
  memory: Memory,
  clock: Clock,
): Promise<Ask[]> {
  memory.stands()
  await memory.loadHolds(orgId, asks)
  const known = memory.head(orgId)
  const head = known ?? (await memory.loadHead(orgId))
  if (!memory.stands()) return [...asks]
  // Asked before writes were lost: what it was asked for, a run perhaps, may be gone. A hold for
  // nothing would be held for ever.
  const stale = asks.filter(({ epoch }) => epoch !== storage.epoch?.())
  if (stale.length > 0) {
    rejectAll(stale, fault('STORAGE_FULL'))
    return asks.filter(ask => !stale.includes(ask))
  }
  const { planned, doubtful, later } = plan(orgId, head, asks, memory, clock)
  const written =
    planned.length === 0
      ? { inserted: 0 }
      : await storage
          .insertMany(
            entries,
            planned.map(({ row }) => row),
          )
          .catch((failure: Error) => ({ inserted: 0, error: failure }))
  const { inserted, error } = written as { inserted: number; error?: Error }
  for (const { ask, row } of planned.slice(0, inserted)) {
    if (ask.kind === 'hold') memory.held(orgId, ask.key, ask.amount)
    ask.resolve(entryOf(row))
  }
  const end = planned[inserted - 1]?.row
  const reached = end ? { seq: end.seq, balance: end.balanceAfter, held: end.heldAfter } : head
  const left = [...planned.slice(inserted).map(({ ask }) => ask), ...later]
  if (error) {
    memory.forget(orgId)
    if (!hasCode(error, 'DUPLICATE')) return rejectAll([...left, ...doubtful], error)
    // Either this key was written before, or another process took the number.
    const [first, ...others] = left as [Ask, ...Ask[]]
    const row = await memory.find(orgId, first.key)
    if (!row) return [...left, ...doubtful]
    repeat(first, row, first.ends === undefined ? 0 : (memory.holdOf(orgId, first.ends) ?? 0))
    return [...others, ...doubtful]
  }
  memory.remember(orgId, reached)
  if (known && doubtful.length > 0) {
    // What is remembered may be older than another process's credit: nobody is refused on its word.
    memory.forget(orgId)
    return [...left, ...doubtful]
  }
  for (const ask of doubtful) await refuse(orgId, ask, reached, memory)
  return left
}

function rejectAll(asks: readonly Ask[], error: unknown): Ask[] {
  for (const ask of asks) ask.reject(error)
  return []
}

/**
 * One writer for each organisation in this process: what arrives while it writes goes into its next
 * batch.
 */
function createWriters(storage: StorageEngine, clock: Clock) {
  const memory = createMemory(storage)
  const queues = new Map<string, Ask[]>()

  async function write(orgId: string, asks: Ask[]): Promise<void> {
    let left = asks
    try {
      for (let tries = 0; left.length > 0; tries++) {
        if (tries === attemptsMax)
          return void rejectAll(
            left,
            fault(
              'UNAVAILABLE',
              { what: 'The ledger', why: 'too many processes write to this organisation at once' },
              { retryAfterMs: 1000 },
            ),
          )
        if (tries > 2) await clock.sleep(clock.random() * contentionMs * tries)
        const before = left.length
        left = await attempt(orgId, left, storage, memory, clock)
        if (left.length < before) tries = 0
      }
    } catch (error) {
      memory.forget(orgId)
      rejectAll(left, error)
    }
  }
  async function drain(orgId: string, queue: Ask[]): Promise<void> {
    while (queue.length > 0) await write(orgId, queue.splice(0, batchMax))
    queues.delete(orgId)
  }
  return {
    memory,
    submit: (orgId: string, ask: Omit<Ask, 'epoch' | 'resolve' | 'reject'>): Promise<Entry> =>
      new Promise((resolve, reject) => {
        const queue = queues.get(orgId)
        const added = { ...ask, epoch: storage.epoch?.(), resolve, reject }
        if (queue) return void queue.push(added)
        const started = [added]
        queues.set(orgId, started)
        void drain(orgId, started)
      }),
  }
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
