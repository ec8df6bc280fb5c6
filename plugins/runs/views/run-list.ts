// The caller's runs, the newest first.
import type { Static } from 'typebox'
import type { RunList, RunSummary } from '#contracts/run-views.ts'
import type { Caller } from '#kernel'
import type { ScopedStorage, Where } from '#ports/storage.ts'
import { Runs, type Run } from '../collections.ts'
import { runSummary } from '../run-summary.ts'
import type { SeenEnded } from '../journal/outcome.ts'
import type { Standings } from './standing.ts'

type Query = Static<typeof RunList>
type Summary = Static<typeof RunSummary>
type Deps = { store: ScopedStorage; ended: SeenEnded; standings: Standings }
/** Runs that one request reads at most, where few of them are of the agent that is asked for. */
const readMax = 1000

const timesOf = ({ from, to }: Query): Where =>
  from === undefined && to === undefined
    ? {}
    : {
        createdAt: {
          ...(from === undefined ? {} : { gte: Date.parse(from) }),
          ...(to === undefined ? {} : { lt: Date.parse(to) }),
        },
      }

export function createRunList({ store, ended, standings }: Deps) {
  const shown = async (seen: Run): Promise<Summary> => {
    const run = await ended(seen, 'summary')
    const { status, queueSeq } = await standings.present(run)
    return { ...runSummary(run), status, queue_seq: queueSeq }
  }
  return async (caller: Caller, query: Query) => {
    const { limit = 50, cursor, status, app_name: appName, session_id: sessionId } = query
    const where: Where = {
      userId: caller.userId,
      // Copies in a fork were run by nobody.
      copied: { exists: false },
      ...(status === undefined ? {} : { status }),
      ...(sessionId === undefined ? {} : { sessionId }),
      ...timesOf(query),
    }
    const items: Summary[] = []
    let next = cursor
    for (let read = 0; ; ) {
      const page = await store.tenant(caller).find(Runs, {
        where,
        orderBy: sessionId === undefined ? ['createdAt', 'desc'] : ['id', 'desc'],
        limit: limit - items.length,
        ...(next === undefined ? {} : { after: next }),
      })
      const wanted = page.items.filter(
        ({ request }) => appName === undefined || request.app_name === appName,
      )
      const found = await Promise.all(wanted.map(shown))
      items.push(...found.filter(run => status === undefined || run.status === status))
      read += page.items.length
      next = page.next
      if (next === undefined) return { items }
      if (items.length === limit || read >= readMax) return { items, next_cursor: next }
    }
  }
}
export type ListRuns = ReturnType<typeof createRunList>
