// Rate limits that hold across processes. Time is the server's: the clocks of the processes are not compared.
import type { Collection as Kept } from 'mongodb'
import { hasCode } from '#contracts/faults.ts'
import { defineAdapter } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Rate, RateLimiter } from '#ports/limits.ts'
import { gate } from '../_shared/gate.ts'
import { createLanes } from '../_shared/lanes.ts'
import { connect, orTold, serverTime as timeOf, urlOptions, type Connection } from '../_shared/mongodb/database.ts'
import { judge } from '../_shared/rates.ts'

/** `until`, `used`: as in `Count`, in milliseconds of the server's time. `ends`: for the server, which takes out what is over. */
type Counted = { _id: string; until: number; used: number; rev: number; ends: Date }
/** How long a measured difference to the server's clock is trusted, in milliseconds; a clock drifts by some milliseconds meanwhile. */
const measureMs = 300_000
/** Of what is over, by the server's own clock. */
const keptSeconds = 60

/** The server's time now, measured now and then and carried on by the process's own steady clock. */
function serverClock(clock: Pick<Clock, 'monotonic'>, ask: () => Promise<number>) {
  let measured: { readonly server: number; readonly at: number } | undefined
  return async (): Promise<number> => {
    if (measured === undefined || clock.monotonic() - measured.at > measureMs) {
      const sent = clock.monotonic(), server = await ask()
      measured = { server, at: (sent + clock.monotonic()) / 2 }
    }
    return measured.server + clock.monotonic() - measured.at
  }
}

type Parts = { readonly connection: Connection; readonly clock: Pick<Clock, 'monotonic'>; /** Milliseconds since 1970, by the server. */ readonly serverTime?: () => Promise<number> }

export async function mongoLimits({ connection, clock, serverTime = () => timeOf(connection.db) }: Parts): Promise<RateLimiter> {
  const counts: Kept<Counted> = connection.db.collection<Counted>('_limits'), now = serverClock(clock, serverTime), lanes = createLanes(), { check, shut } = gate('The rate limiter')
  await orTold(counts.createIndexes([{ key: { ends: 1 }, name: 'ends', expireAfterSeconds: keptSeconds }]))
  const keyOf = (name: string, subject: string): string => `${name}\n${subject}`

  /** Undefined when another process has counted meanwhile. */
  const takeOnce = async (id: string, name: string, rate: Rate, cost: number): Promise<number | undefined> => {
    const known = (await orTold(counts.findOne({ _id: id }))) ?? undefined, { count: { until, used }, waitMs } = judge(name, rate, { known, now: await now(), cost })
    if (waitMs > 0) return waitMs
    const next = { until, used, rev: (known?.rev ?? 0) + 1, ends: new Date(until) }
    if (known) return (await orTold(counts.replaceOne({ _id: id, rev: known.rev }, next))).matchedCount === 1 ? 0 : undefined
    return orTold(counts.insertOne({ _id: id, ...next })).then(() => 0, (error: unknown) => {
      if (hasCode(error, 'DUPLICATE')) return undefined
      throw error
    })
  }
  return {
    async take(name, subject, rate, cost = 1) {
      check()
      const id = keyOf(name, subject)
      // Calls of this process take turns: they need not meet at the server.
      return lanes.one(id, async () => {
        for (;;) {
          const waitMs = await takeOnce(id, name, rate, cost)
          if (waitMs !== undefined) return waitMs
        }
      })
    },
    async reset(name, subject) {
      check()
      const id = keyOf(name, subject)
      await lanes.one(id, () => orTold(counts.deleteOne({ _id: id })))
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

export default defineAdapter<RateLimiter>({ port: 'limits', scheme: 'mongodb', ownTime: true, options: urlOptions, open: async ({ url, clock }) => mongoLimits({ connection: await connect(url), clock }) })
