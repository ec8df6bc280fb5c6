// The caller's runs, conversation by conversation. Conversations have an order already. An order of
// runs would need another index, and each of a run's many writes would pay for it.
import type { Static } from 'typebox'
import type { RunList, RunSummary } from '#contracts/run-views.ts'
import { fault, type Caller } from '#kernel'
import type { ScopedStorage, Where } from '#ports/storage.ts'
import { Runs, Sessions, type Run, type Session } from '../collections.ts'
import type { SeenEnded } from '../journal/outcome.ts'
import { runSummary } from '../run-summary.ts'
import type { Standings } from './standing.ts'

type Query = Static<typeof RunList>
type Summary = Static<typeof RunSummary>
type Deps = { store: ScopedStorage; ended: SeenEnded; standings: Standings }
/** Where a page ended: in which conversation, and behind which of its runs; null: behind all. */
type Place = readonly [updatedAt: number, sessionId: string, run: string | null]
/** What one request reads at most, where few runs are of those that are asked for. */
const readMax = 1000
const sessionsMax = 200
const sessionsTogether = 50

const cursorAt = (...place: Place): string =>
  Buffer.from(JSON.stringify(place)).toString('base64url')
function placeIn(cursor: string): Place {
  try {
    const place = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as Place
    const [at, id, run] = place
    if (Number.isSafeInteger(at) && typeof id === 'string' && (run === null || run.length > 0))
      return place
  } catch {
    // Not one that a page gave.
  }
  throw fault('CURSOR_INVALID', { field: 'cursor', why: 'is not one that a page gave' })
}
const timeOf = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text))

export function createRunList({ store, ended, standings }: Deps) {
  /** Conversations from the place on, the one with the latest activity first. */
  async function* sessionsFrom(caller: Caller, query: Query, place: Place | undefined) {
    const own = store.tenant(caller)
    if (query.session_id !== undefined) {
      const session = await own.get(Sessions, query.session_id)
      if (session?.userId === caller.userId) yield session
      return
    }
    const from = timeOf(query.from)
    const where: Where = {
      userId: caller.userId,
      deleting: { exists: false },
      ...(place ? { updatedAt: { lte: place[0] } } : {}),
    }
    for (let after: string | undefined; ; ) {
      const page = await own.find(Sessions, {
        where,
        orderBy: ['updatedAt', 'desc'],
        limit: sessionsTogether,
        ...(after === undefined ? {} : { after }),
      })
      for (const session of page.items) {
        const { updatedAt, id } = session
        // Every further conversation ended its last run before that time.
        if (from !== undefined && updatedAt < from) return
        if (!place || updatedAt < place[0] || id <= place[1]) yield session
      }
      if ((after = page.next) === undefined) return
    }
  }
  const shown = async (seen: Run): Promise<Summary> => {
    const run = await ended(seen, 'summary')
    const { status, queueSeq } = await standings.present(run)
    return { ...runSummary(run), status, queue_seq: queueSeq }
  }
  const runsIn = (
    caller: Caller,
    { id: sessionId }: Session,
    { status, from, to }: Query,
    paging: { limit: number; after?: string },
  ) => {
    const createdAt = {
      ...(from === undefined ? {} : { gte: Date.parse(from) }),
      ...(to === undefined ? {} : { lt: Date.parse(to) }),
    }
    return store.tenant(caller).find(Runs, {
      where: {
        sessionId,
        // Copies in a fork were run by nobody.
        copied: { exists: false },
        ...(status === undefined ? {} : { status }),
        ...(Object.keys(createdAt).length === 0 ? {} : { createdAt }),
      },
      orderBy: ['id', 'desc'],
      ...paging,
    })
  }

  return async (
    caller: Caller,
    query: Query,
  ): Promise<{ items: Summary[]; next_cursor?: string }> => {
    const { limit = 50, cursor, status, app_name: appName } = query
    const place = cursor === undefined ? undefined : placeIn(cursor)
    const items: Summary[] = []
    let [read, sessions] = [0, 0]
    for await (const session of sessionsFrom(caller, query, place)) {
      let after = session.id === place?.[1] ? place[2] : undefined
      while (after !== null) {
        const more = after === undefined ? {} : { after }
        const page = await runsIn(caller, session, query, { limit: limit - items.length, ...more })
        const wanted = page.items.filter(
          ({ request }) => appName === undefined || request.app_name === appName,
        )
        const found = await Promise.all(wanted.map(shown))
        items.push(...found.filter(run => status === undefined || run.status === status))
        after = page.next ?? null
        read += page.items.length
        if (items.length === limit || read >= readMax)
          return { items, next_cursor: cursorAt(session.updatedAt, session.id, after) }
      }
      if (++sessions >= sessionsMax)
        return { items, next_cursor: cursorAt(session.updatedAt, session.id, null) }
    }
    return { items }
  }
}
export type ListRuns = ReturnType<typeof createRunList>
