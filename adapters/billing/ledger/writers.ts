// Writes what is asked, batch by batch, against other processes that do so too.
import { fault, hasCode } from '#contracts/faults.ts'
import type { Entry } from '#ports/billing.ts'
import type { Clock } from '#ports/clock.ts'
import type { StorageEngine } from '#ports/storage.ts'
import { createMemory, type Head, type Memory } from './memory.ts'
import { repeat, type Ask } from './operations.ts'
import { plan } from './plan.ts'
import { batchMax, entries, entryOf } from './rows.ts'

/**
 * Tries in a row that bring nothing forward, against other processes that write to the same
 * organisation.
 */
const attemptsMax = 50
const contentionMs = 5

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
export function createWriters(storage: StorageEngine, clock: Clock) {
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
