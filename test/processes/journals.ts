// What the store itself holds of the runs, read beside the processes.
import { systemClock } from '#adapters/clock/system.ts'
import { mongoEventlog } from '#adapters/eventlog/mongodb.ts'
import type { LoggedEvent } from '#ports/eventlog.ts'
import type { Follower } from '../durability/client.ts'
import type { freshDatabase } from '../support/databases/mongodb.ts'

/** How the runs stand that their readers saw no end of, for whoever has to find out why. */
export async function toldOf(
  { connect }: ReturnType<typeof freshDatabase>,
  orgId: string,
  followers: readonly Follower[],
): Promise<string> {
  const { db, close } = await connect()
  const left = followers.filter(({ ended }) => !ended)
  const { of, close: closeJournals } = await openJournals({ connect }, orgId)
  const lines = await Promise.all(
    left.map(async ({ key, runId, last }) => {
      const doc = await db.collection<{ _id: string }>('c_runs').findOne({ _id: runId })
      const { phase, status, owner, epoch, beat, due, replies } = (doc ?? {}) as Record<
        string,
        unknown
      >
      const { log } = await of(runId).catch(() => ({ log: [] }))
      const state = JSON.stringify({ phase, status, owner, epoch, beat, due, replies })
      const tail = log
        .slice(-12)
        .map(({ seq, type, data }) => `${seq} ${type} ${JSON.stringify(data).slice(0, 80)}`)
      return `${key} ${runId}: ${state}; seen up to ${last}; log: ${tail.join(' | ')}`
    }),
  )
  await close()
  await closeJournals()
  return lines.join('\n')
}

export type Driven = {
  /** Lease numbers, in the order in which they were taken. */ readonly takes: readonly number[]
  readonly by: readonly string[]
  readonly log: readonly LoggedEvent[]
}

export async function openJournals(
  { connect }: Pick<ReturnType<typeof freshDatabase>, 'connect'>,
  orgId: string,
) {
  const eventlog = await mongoEventlog({
    connection: await connect(),
    clock: systemClock(),
    log: () => undefined,
  })
  return {
    close: () => eventlog.close(),
    async of(runId: string): Promise<Driven> {
      const log = await eventlog.read(`${orgId}/run:${runId}`, { limit: 100_000 })
      const taken = log
        .filter(({ type }) => type === 'took@1')
        .map(({ data }) => data as { epoch: number; by: string })
      return { log, takes: taken.map(({ epoch }) => epoch), by: taken.map(({ by }) => by) }
    },
  }
}
