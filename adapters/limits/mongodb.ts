// Rate limits that hold across processes. Time is the server's: the clocks of the processes are not
// compared.
import type { Collection as Kept } from 'mongodb'
import { hasCode } from '#contracts/faults.ts'
import { defineAdapter } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { RateLimiter } from '#ports/limits.ts'
import { closable } from '../_shared/closable.ts'
import { createKeyedQueue } from '../_shared/keyed-queue.ts'
import {
  connect,
  orFault,
  serverTime as timeOf,
  urlOptions,
  type Connection,
} from '../_shared/mongodb/database.ts'
import { evaluate, refunded, type Count } from './lib/rate-limit.ts'

/**
 * `until`, `used`: as in `Count`, in milliseconds of the server's time. `ends`: for the server,
 * which takes out what is over.
 */
type Counted = { _id: string; until: number; used: number; rev: number; ends: Date }
/**
 * How long a measured difference to the server's clock is trusted, in milliseconds; a clock drifts
 * by some milliseconds meanwhile.
 */
const measureMs = 300_000
/** Of what is over, by the server's own clock. */
const keptSeconds = 60

/**
 * The server's time now, measured now and then and carried on by the process's own steady clock.
 */
function serverClock(clock: Pick<Clock, 'monotonic'>, ask: () => Promise<number>) {
  let measured: { readonly server: number; readonly at: number } | undefined
  return async (): Promise<number> => {
    if (measured === undefined || clock.monotonic() - measured.at > measureMs) {
      const sent = clock.monotonic()
      const server = await ask()
      measured = { server, at: (sent + clock.monotonic()) / 2 }
    }
    return measured.server + clock.monotonic() - measured.at
  }
}

type Parts = {
  readonly connection: Connection
  readonly clock: Pick<Clock, 'monotonic'>
  /** Milliseconds since 1970, by the server. */
  readonly serverTime?: () => Promise<number>
}

export async function mongoLimits({
  connection,
  clock,
  serverTime = () => timeOf(connection.db),
}: Parts): Promise<RateLimiter> {
  const counts: Kept<Counted> = connection.db.collection<Counted>('_limits')
  const now = serverClock(clock, serverTime)
  const lanes = createKeyedQueue()
  const { check, shut } = closable('The rate limiter')
  await orFault(
    counts.createIndexes([{ key: { ends: 1 }, name: 'ends', expireAfterSeconds: keptSeconds }]),
  )
  const keyOf = (name: string, subject: string): string => `${name}\n${subject}`

  type Decided<T> = { readonly answer: T; readonly count: Count | undefined }
  type Decide<T> = (known: Count | undefined, at: number) => Decided<T>
  /** Undefined when another process has counted meanwhile. */
  const decideOnce = async <T>(
    id: string,
    decide: Decide<T>,
  ): Promise<{ answer: T } | undefined> => {
    const known = (await orFault(counts.findOne({ _id: id }))) ?? undefined
    const { answer, count } = decide(known, await now())
    if (count === undefined) return { answer }
    const { until, used } = count
    const next = { until, used, rev: (known?.rev ?? 0) + 1, ends: new Date(until) }
    if (known) {
      const { matchedCount } = await orFault(counts.replaceOne({ _id: id, rev: known.rev }, next))
      return matchedCount === 1 ? { answer } : undefined
    }
    return orFault(counts.insertOne({ _id: id, ...next })).then(
      () => ({ answer }),
      (error: unknown) => {
        if (hasCode(error, 'DUPLICATE')) return undefined
        throw error
      },
    )
  }
  /** Calls of this process take turns: they need not meet at the server. */
  const decided = <T>(id: string, decide: Decide<T>): Promise<T> =>
    lanes.one(id, async () => {
      for (;;) {
        const done = await decideOnce(id, decide)
        if (done) return done.answer
      }
    })
  return {
    async take(name, subject, rate, cost = 1) {
      check()
      return decided(keyOf(name, subject), (known, at) => {
        const { count, waitMs } = evaluate(name, rate, { known, now: at, cost })
        return { answer: waitMs, count: waitMs > 0 ? undefined : count }
      })
    },
    async refund(name, subject, rate, cost = 1) {
      check()
      await decided(keyOf(name, subject), (known, at) => {
        const left = refunded(rate, { known, now: at, cost })
        return { answer: undefined, count: known && (left ?? { until: at, used: 0 }) }
      })
    },
    async reset(name, subject) {
      check()
      const id = keyOf(name, subject)
      await lanes.one(id, () => orFault(counts.deleteOne({ _id: id })))
    },
    async ping() {
      check()
      await connection.ping()
    },
    async close() {
      if (shut()) await lanes.settled().then(connection.close)
    },
  }
}

export default defineAdapter<RateLimiter>({
  port: 'limits',
  scheme: 'mongodb',
  externalClock: true,
  options: urlOptions,
  open: async ({ url, clock }) => mongoLimits({ connection: await connect(url), clock }),
})
