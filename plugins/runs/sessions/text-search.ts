// Finds conversations that hold every word. Matches come from the search index, what is shown comes
// from the documents. Pages go on to the last match.
import type { Static } from 'typebox'
import type { SearchHit } from '#contracts/sessions.ts'
import { fault, type Caller } from '#kernel'
import type { Hit } from '#ports/search.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Runs, Sessions } from '../collections.ts'
import type { SessionService } from './sessions.ts'
import { transcripts } from './transcript-index.ts'
import { partsOf, placeOf } from './transcript-passages.ts'
import type { Transcripts } from './transcripts.ts'

/** Matches that are shown for one conversation. */
const matchesMax = 3
/** Passages that one call to the index returns. */
const lookedAt = 100
/** Characters around a word that an excerpt shows. */
const aroundChars = 80
const id = /^[0-9a-f-]{36}$/

type Match = {
  readonly runId: string
  readonly role: 'user' | 'assistant'
  readonly excerpt: string
}
type Group = { readonly sessionId: string; readonly matches: Match[] }
type Deps = {
  readonly store: ScopedStorage
  readonly transcripts: Transcripts
  readonly sessions: SessionService
}
export type Search = ReturnType<typeof createSearch>

const isLow = (text: string, at: number) => (text.charCodeAt(at) & 0xfc00) === 0xdc00
function excerptOf({ text, highlights }: Hit): string {
  const start = highlights[0]?.[0] ?? 0
  const from = Math.max(0, start - aroundChars)
  const to = Math.min(text.length, start + aroundChars)
  const [begin, end] = [from, to].map(at => (isLow(text, at) ? at + 1 : at))
  return `${from > 0 ? '…' : ''}${text.slice(begin, end).trim()}${to < text.length ? '…' : ''}`
}
function take({ matches }: Group, hit: Hit): void {
  const { run } = partsOf(hit.id)
  if (
    !run ||
    matches.length >= matchesMax ||
    matches.some(({ runId, role }) => runId === run.id && role === run.role)
  )
    return
  matches.push({ runId: run.id, role: run.role, excerpt: excerptOf(hit) })
}

export function createSearch({ store, transcripts: index, sessions }: Deps) {
  /**
   * Yields conversations with a match after the cursor, the newest first. Further matches of a
   * conversation that has `matchesMax` are skipped.
   */
  async function* groups(
    { orgId, userId }: Caller,
    q: string,
    cursor: string | undefined,
  ): AsyncGenerator<Group> {
    const shared = await index.indexOf({ orgId })
    const behind = (sessionId: string) => placeOf.session({ userId, id: sessionId })
    let before = cursor === undefined ? undefined : behind(cursor)
    let group: Group | undefined
    for (;;) {
      const { hits, more } = await shared.match(transcripts, {
        text: q,
        where: { id: { prefix: placeOf.user(userId) } },
        limit: lookedAt,
        ...(before === undefined ? {} : { before }),
      })
      for (const hit of hits) {
        const { sessionId } = partsOf(hit.id)
        if (group && group.sessionId !== sessionId) {
          yield group
          group = undefined
        }
        group ??= { sessionId, matches: [] }
        take(group, hit)
      }
      if (!more) {
        if (group) yield group
        return
      }
      const isFull: boolean = group!.matches.length >= matchesMax
      before = isFull ? behind(group!.sessionId) : hits.at(-1)!.id
      if (!isFull) continue
      yield group!
      group = undefined
    }
  }
  /** Drops what no longer exists: the index learns of removals later. */
  const shown = async (
    caller: Caller,
    found: readonly Group[],
  ): Promise<Static<typeof SearchHit>[]> => {
    if (found.length === 0) return []
    const own = store.tenant(caller)
    const runIds = [...new Set(found.flatMap(({ matches }) => matches.map(({ runId }) => runId)))]
    const [{ items: there }, { items: runs }] = await Promise.all([
      own.find(Sessions, {
        where: { userId: caller.userId, id: { in: found.map(({ sessionId }) => sessionId) } },
        limit: found.length,
      }),
      runIds.length === 0
        ? { items: [] }
        : own.find(Runs, { where: { id: { in: runIds } }, limit: runIds.length }),
    ])
    const sessionOf = new Map(
      there.filter(({ deleting }) => !deleting).map(session => [session.id, session]),
    )
    const runOf = new Map(runs.map(run => [run.id, run]))
    const matchOf = ({ runId, role, excerpt }: Match) => {
      const run = runOf.get(runId)
      if (!run || (role === 'assistant' && run.answerCut)) return []
      return [{ message_id: role === 'user' ? run.messageId : run.answerId, role, excerpt }]
    }
    return found.flatMap(({ sessionId, matches }) => {
      const session = sessionOf.get(sessionId)
      const left = matches.flatMap(matchOf)
      if (!session || (matches.length > 0 && left.length === 0)) return []
      return [{ session: sessions.reply(session), matches: left }]
    })
  }

  /**
   * A page is full unless it is the last. Throws CURSOR_INVALID, and INVALID_FIELD where the query
   * holds no word.
   */
  return async function search(
    caller: Caller,
    { q, limit = 50, cursor }: { q: string; limit?: number; cursor?: string },
  ) {
    if (!/[\p{L}\p{N}]/u.test(q)) throw fault('INVALID_FIELD', { field: 'q', why: 'holds no word' })
    if (cursor !== undefined && !id.test(cursor))
      throw fault('CURSOR_INVALID', {
        field: 'cursor',
        why: 'is not one that a page of this search ended with',
      })
    const found = groups(caller, q.toWellFormed(), cursor)
    const items: Static<typeof SearchHit>[] = []
    let last = cursor
    let isOver = false
    while (items.length < limit && !isOver) {
      const some: Group[] = []
      while (some.length < limit - items.length && !isOver) {
        const { done, value } = await found.next()
        if (done) isOver = true
        else some.push(value)
      }
      items.push(...(await shown(caller, some)))
      last = some.at(-1)?.sessionId ?? last
    }
    const hasMore = !isOver && !(await found.next()).done
    return { items, ...(hasMore ? { next_cursor: last! } : {}) }
  }
}
