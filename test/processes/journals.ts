// What the store itself holds of the runs, read beside the processes.
import { systemClock } from '#adapters/clock/system.ts'
import { mongoEventlog } from '#adapters/eventlog/mongodb.ts'
import type { LoggedEvent } from '#ports/eventlog.ts'
import type { freshDatabase } from '../kit/mongodb.ts'

export type Driven = { /** Lease numbers, in the order in which they were taken. */ readonly takes: readonly number[]; readonly by: readonly string[]; readonly log: readonly LoggedEvent[] }

export async function openJournals({ connect }: ReturnType<typeof freshDatabase>, orgId: string) {
  const eventlog = await mongoEventlog({ connection: await connect(), clock: systemClock(), log: () => undefined })
  return {
    close: () => eventlog.close(),
    async of(runId: string): Promise<Driven> {
      const log = await eventlog.read(`${orgId}/run:${runId}`, { limit: 100_000 }), taken = log.filter(({ type }) => type === 'took@1').map(({ data }) => data as { epoch: number; by: string })
      return { log, takes: taken.map(({ epoch }) => epoch), by: taken.map(({ by }) => by) }
    },
  }
}
