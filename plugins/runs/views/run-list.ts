// The caller's runs, conversation by conversation. Conversations have an order already. An order of
// runs would need another index, and each of a run's many writes would pay for it.
import type { Static } from 'typebox'
import type { RunList, RunSummary } from '#contracts/run-views.ts'
import { fault, type Caller } from '#kernel'
import type { ScopedStorage, Where } from '#ports/storage.ts'
import { Runs, Sessions, type Run, type Session, type Status } from '../collections.ts'
import type { SeenEnded } from '../journal/outcome.ts'
import { runSummary } from '../run-summary.ts'
import type { Standings } from './standing.ts'

type Query = Static<typeof RunList>
type Summary = Static<typeof RunSummary>
type Deps = { store: ScopedStorage; ended: SeenEnded; standings: Standings }
/** Where a page ended: in which conversation, and behind which of its runs; null: behind all. */
type Place = readonly [updatedAt: number, sessionId: string, runId: string | null]
/** What one request reads at most, where few runs are of those that are asked for. */
const readMax = 1000
const sessionsMax = 200
const sessionsTogether = 50
/** How many runs are read at a time at least, where a filter may leave out most of them. */
const runsTogether = 50

const idPattern = /^[0-9a-f-]{36}$/
const isId = (value: unknown): boolean => typeof value === 'string' && idPattern.test(value)
const cursorAt = (...place: Place): string =>
  Buffer.from(JSON.stringify(place)).toString('base64url')
function placeIn(cursor: string): Place {
  try {
    const [at, id, run] = JSON.parse(Buffer.from(cursor, 'base64url').toString()) as Place
    if (Number.isSafeInteger(at) && isId(id) && (run === null || isId(run))) return [at, id, run]
  } catch {
    // Not one that a page gave.
  }
  throw fault('CURSOR_INVALID', { field: 'cursor', why: 'is not one that a page gave' })
}
const timeOf = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text))

/**
 * What the document may say of a run that is shown with this status. A turn, a pause and an end
 * are known before the run's document tells of them.
 */
const storedAs: Readonly<Record<Status, readonly Status[]>> = {
  running: ['running', 'queued', 'blocked'],
  queued: ['queued', 'blocked'],
  blocked: ['queued', 'blocked'],
  waiting: ['waiting'],
  done: ['done', 'running'],
  failed: ['failed', 'running'],
  cancelled: ['cancelled', 'running'],
}

export function createRunList({ store, ended, standings }: Deps) {
  const own = async (caller: Caller, sessionId: string): Promise<Session | undefined> => {
    const session = await store.tenant(caller).get(Sessions, sessionId)
    return session?.userId === caller.userId && !session.deleting ? session : undefined
  }
  /** Conversations from the place on, the one with the latest activity first. */
  async function* sessionsFrom(
    caller: Caller,
    query: Query,
    place: Place | undefined,
  ): AsyncGenerator<readonly [updatedAt: number, sessionId: string]> {
    const asked = query.session_id
    if (asked !== undefined) {
      const session = await own(caller, asked)
      if (session) yield [session.updatedAt, asked]
      return
    }
    // A conversation that went on since the last page stands before the place now. Its other runs
    // still come here.
    if (place && place[2] !== null && (await own(caller, place[1]))) yield [place[0], place[1]]
    const from = timeOf(query.from)
    const where: Where = {
      userId: caller.userId,
      deleting: { exists: false },
      ...(place ? { updatedAt: { lte: place[0] } } : {}),
    }
    for (let after: string | undefined; ; ) {
      const page = await store.tenant(caller).find(Sessions, {
        where,
        orderBy: ['updatedAt', 'desc'],
        limit: sessionsTogether,
        ...(after === undefined ? {} : { after }),
      })
      for (const { updatedAt, id } of page.items) {
        // Every further conversation ended its last run before that time.
        if (from !== undefined && updatedAt < from) return
        const isBehind = !place || updatedAt < place[0] || id < place[1]
        if (isBehind && id !== place?.[1]) yield [updatedAt, id]
      }
      if ((after = page.next) === undefined) return
    }
  }
  const shown = async (seen: Run): Promise<Summary> => {
    const run = await ended(seen, 'summary')
    const { status, queueSeq } = await standings.present(run)
    return { ...runSummary(run), status, queue_seq: queueSeq }
  }
  /** Runs of a conversation, the newest first; those that are older than `before`. */
  const runsIn = (
    caller: Caller,
    sessionId: string,
    { status, from, to }: Query,
    { limit, before }: { limit: number; before: string | undefined },
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
        ...(before === undefined ? {} : { id: { lt: before } }),
        ...(status === undefined ? {} : { status: { in: storedAs[status] } }),
        ...(Object.keys(createdAt).length === 0 ? {} : { createdAt }),
      },
      orderBy: ['id', 'desc'],
      limit,
    })
  }

  return async (
    caller: Caller,
    query: Query,
  ): Promise<{ items: Summary[]; next_cursor?: string }> => {
    const { limit = 50, cursor, status, app_name: appName } = query
    const place = cursor === undefined ? undefined : placeIn(cursor)
    const least = status === undefined && appName === undefined ? 1 : runsTogether
    const items: Summary[] = []
    let [read, sessions] = [0, 0]
    for await (const [updatedAt, sessionId] of sessionsFrom(caller, query, place)) {
      let before = sessionId === place?.[1] ? place[2] : undefined
      while (before !== null) {
        const room = limit - items.length
        const page = await runsIn(caller, sessionId, query, {
          limit: Math.max(room, least),
          before,
        })
        const wanted = page.items.filter(
          ({ request }) => appName === undefined || request.app_name === appName,
        )
        const found = (await Promise.all(wanted.map(shown))).filter(
          run => status === undefined || run.status === status,
        )
        items.push(...found.slice(0, room))
        const oldest = page.items.at(-1)?.id
        const last = found.length < room ? oldest : found[room - 1]!.run_id
        before = last !== undefined && (last !== oldest || page.next !== undefined) ? last : null
        read += page.items.length
        if (items.length === limit || read >= readMax)
          return { items, next_cursor: cursorAt(updatedAt, sessionId, before) }
      }
      if (++sessions >= sessionsMax)
        return { items, next_cursor: cursorAt(updatedAt, sessionId, null) }
    }
    return { items }
  }
}
export type ListRuns = ReturnType<typeof createRunList>
