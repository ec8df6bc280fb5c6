// Keeps the texts of conversations in the search index: written when a run ends, removed with the
// run. A mark on the run's document ensures it; the call after a run's end is a hint.
import { hasCode } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Passage, ScopedSearch, SharedPassages } from '#ports/search.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import {
  Runs,
  SearchProgresses,
  SearchRemovals,
  type SearchRemoval,
  Sessions,
  type Run,
  type Session,
} from '../collections.ts'
import type { RunsConfig } from '../config.ts'
import type { Texts } from '../journal/texts.ts'

export const transcriptsReason =
  'search: conversations that the index does not hold yet, or still holds, of every organisation'
/**
 * The collection in the index. Words are not stemmed: a message does not tell its language, and
 * names have no stem.
 */
export const transcripts = 'conversations',
  spec = { languages: ['none'] } as const
/**
 * Messages are indexed in pieces. Each piece fits into a passage, and takes a few milliseconds at
 * most.
 */
const pieceChars = 20_000
/** A piece ends at a space, if one is among its last characters. */
const spaceChars = 200
/** Bounds of one call to the index. */
const batchChars = 1_000_000
const batchPassages = 500
/** Runs that wait in this process to be indexed. Others are found by their mark. */
const waitingMax = 5000
const runsTogether = 200
/** Background work reads so many runs at a time, and so many pages in one pass. */
const pageRuns = 200
const pagesAtOnce = 25
/** Work that is older than so many milliseconds was left by its process. */
const staleMs = 60_000

export const placeOf = {
  user: (userId: string) => `${userId}/`,
  session: ({ userId, id }: Pick<Session, 'userId' | 'id'>) => `${userId}/${id}/`,
  run: ({ userId, sessionId, id }: Pick<Run, 'userId' | 'sessionId' | 'id'>) =>
    `${userId}/${sessionId}/${id}/`,
  /** Sorts before every run of the session. */
  title: (session: Pick<Session, 'userId' | 'id'>) => `${placeOf.session(session)}!`,
}
const titleOf = (session: Session): Passage => ({
  id: placeOf.title(session),
  text: session.title.toWellFormed(),
})

type Role = 'user' | 'assistant'
/** The role whose text a piece is, as the last part of its id begins. */
const signs: Readonly<Record<Role, string>> = { user: 'm', assistant: 'r' }
type Parts = {
  readonly sessionId: string
  readonly run: { readonly id: string; readonly role: Role } | undefined
}
/** Splits an id that was made here. The id of a title has no run. */
export function partsOf(id: string): Parts {
  const [, sessionId = '', runId = '!', piece = ''] = id.split('/')
  if (runId === '!') return { sessionId, run: undefined }
  return {
    sessionId,
    run: { id: runId, role: piece.startsWith(signs.user) ? 'user' : 'assistant' },
  }
}

function* piecesOf(text: string, charsMax: number): Generator<string> {
  const all = text.slice(0, charsMax).toWellFormed()
  for (let at = 0; at < all.length; ) {
    const end = Math.min(all.length, at + pieceChars)
    const space = end < all.length ? all.lastIndexOf(' ', end) : -1
    const cut = space > Math.max(at, end - spaceChars) ? space : end
    yield all.slice(at, cut).toWellFormed()
    at = cut
  }
}
function passagesOf(run: Run, charsMax: number): Passage[] {
  const place = placeOf.run(run)
  const pieces = (role: Role, text: string) =>
    Array.from(
      piecesOf(text, charsMax),
      (piece, n): Passage => ({
        id: `${place}${signs[role]}${String(n).padStart(4, '0')}`,
        text: piece,
      }),
    )
  return [
    ...pieces('user', run.request.message),
    ...(run.answerCut ? [] : pieces('assistant', run.answer ?? '')),
  ]
}
const batches = function* (passages: readonly Passage[]): Generator<Passage[]> {
  for (let at = 0; at < passages.length; ) {
    let end = at
    let chars = 0
    while (
      end < passages.length &&
      end - at < batchPassages &&
      (end === at || chars + passages[end]!.text.length <= batchChars)
    )
      chars += passages[end++]!.text.length
    yield passages.slice(at, end)
    at = end
  }
}

type Org = { readonly orgId: string }
type Deps = {
  readonly store: ScopedStorage
  readonly search: ScopedSearch
  readonly texts: Texts
  readonly clock: Clock
  readonly log: Log
  readonly config: RunsConfig
  readonly signal: AbortSignal
}
export type Transcripts = ReturnType<typeof createTranscripts>

export function createTranscripts({ store, search, texts, clock, log, config, signal }: Deps) {
  // Holds ids, not documents. Documents that wait would outlive the young generation, and cost the
  // garbage collector more than reading them again.
  const waiting = new Map<string, Org>()
  let defined: Promise<void> | undefined
  let isWorking = false

  /**
   * Returns the index, and creates its collection once. A failure is tried again at the next call.
   */
  const indexOf = async (scope: Org): Promise<SharedPassages> => {
    const index = search.shared(scope)
    defined ??= index.define(transcripts, spec).catch((error: unknown) => {
      defined = undefined
      throw error
    })
    await defined
    return index
  }
  const put = async (index: SharedPassages, passages: readonly Passage[]): Promise<void> => {
    for (const batch of batches(passages))
      for (const { error } of (await index.index(transcripts, batch, { signal })).errors)
        throw error
  }
  /** Writes the titles of these conversations. */
  const writeTitles = async (scope: Org, sessions: readonly Session[]): Promise<void> => {
    if (sessions.length === 0) return
    await put(await indexOf(scope), sessions.map(titleOf))
    for (const { id, title, unindexed } of sessions) {
      if (unindexed !== undefined)
        await store
          .tenant(scope)
          .update(Sessions, id, { unset: ['unindexed'] }, { if: { title, unindexed } })
    }
  }
  /**
   * Writes runs of one organisation, at most `runsTogether`. A copy's texts are indexed at its
   * source. Texts of runs that were removed meanwhile are removed again.
   */
  const write = async (scope: Org, runs: readonly Run[]): Promise<void> => {
    const closed = runs.filter(({ phase }) => phase === 'closed')
    const ids = closed.map(({ id }) => id)
    if (ids.length === 0) return
    const index = await indexOf(scope)
    const own = store.tenant(scope)
    const removeUnder = (prefix: string) => index.remove(transcripts, { where: { id: { prefix } } })
    for (const run of closed)
      if (run.answerCut) await removeUnder(placeOf.run(run) + signs.assistant)
    const passages = (run: Run) => passagesOf(run, config.search_chars_max)
    const withTexts = closed.filter(({ source }) => source === undefined)
    await put(index, withTexts.filter(({ long }) => long === undefined).flatMap(passages))
    for (const run of withTexts)
      if (run.long !== undefined) await put(index, passages(await texts.whole(run)))
    // A mark that was renewed meanwhile stays: that change was not written here.
    const marked = Math.max(...closed.map(({ unindexed = 0 }) => unindexed))
    await own.updateMany(
      Runs,
      { id: { in: ids }, unindexed: { lte: marked } },
      { unset: ['unindexed'] },
    )
    if ((await own.count(Runs, { id: { in: ids } })) === ids.length) return
    const left = new Set(
      (await own.find(Runs, { where: { id: { in: ids } }, limit: runsTogether })).items.map(
        ({ id }) => id,
      ),
    )
    for (const run of closed) if (!left.has(run.id)) await removeUnder(placeOf.run(run))
  }
  const writeAll = async (runs: readonly Run[]): Promise<void> => {
    for (const [orgId, some] of Map.groupBy(runs, run => run.orgId))
      for (let at = 0; at < some.length; at += runsTogether)
        await write({ orgId }, some.slice(at, at + runsTogether))
  }
  /** Writes the titles of conversations that these runs opened. */
  const writeTitlesOf = async (runs: readonly Run[]): Promise<void> => {
    const opening = runs.filter(({ opensSession }) => opensSession)
    for (const [orgId, some] of Map.groupBy(opening, run => run.orgId)) {
      const ids = some.map(({ sessionId }) => sessionId)
      const { items } = await store
        .tenant({ orgId })
        .find(Sessions, { where: { id: { in: ids } }, limit: pageRuns })
      await writeTitles({ orgId }, items)
    }
  }
  /**
   * Backfills conversations that are older than the index, in the order of their runs. Another
   * process goes on where one ended.
   */
  const goBack = async (): Promise<void> => {
    const all = store.system(transcriptsReason)
    const id = transcripts
    for (let page = 0; page < pagesAtOnce && !signal.aborted; page++) {
      const { after, done } = (await all.get(SearchProgresses, id)) ?? { after: '', done: false }
      if (done) return
      const { items } = await all.find(Runs, {
        where: { phase: 'closed', id: { gt: after } },
        limit: pageRuns,
      })
      await writeAll(items)
      await writeTitlesOf(items)
      const next = { after: items.at(-1)?.id ?? after, done: items.length === 0 }
      if (
        !(await all.update(SearchProgresses, id, { set: next }, { if: { after } })) &&
        after === ''
      )
        await all
          .insert(SearchProgresses, { id, ...next })
          .catch((error: unknown) => hasCode(error, 'DUPLICATE') || Promise.reject(error))
    }
  }
  /**
   * Writes the waiting runs, some of one organisation at a time. Runs that come meanwhile wait for
   * the next turn: one call to the index costs as much as many runs in it.
   */
  const drain = async (): Promise<void> => {
    // Runs that end together are written together.
    await clock.sleep(config.search_wait_ms, signal)
    for (let left = waiting.size; left > 0 && !signal.aborted; ) {
      const { orgId } = waiting.values().next().value!
      const ids = waiting
        .entries()
        .filter(([, scope]) => scope.orgId === orgId)
        .take(runsTogether)
        .map(([id]) => id)
        .toArray()
      for (const id of ids) waiting.delete(id)
      left -= ids.length
      const { items } = await store
        .tenant({ orgId })
        .find(Runs, { where: { id: { in: ids } }, limit: runsTogether })
      await write({ orgId }, items)
    }
  }
  const failed = (error: unknown) => void (signal.aborted || log('warn', 'search', { error }))
  const wake = () => {
    if (isWorking) return
    isWorking = true
    void drain()
      .catch((error: unknown) => {
        // The runs keep their marks, and are found by them.
        waiting.clear()
        failed(error)
      })
      .finally(() => {
        isWorking = false
        if (waiting.size > 0 && !signal.aborted) wake()
      })
  }
  const remove = async ({ id, orgId, prefix }: SearchRemoval): Promise<void> => {
    await (await indexOf({ orgId })).remove(transcripts, { where: { id: { prefix } } })
    await store.tenant({ orgId }).remove(SearchRemovals, id)
  }

  return {
    indexOf,
    /** An installation without runs needs no backfill. */
    async begin(): Promise<void> {
      const all = store.system(transcriptsReason)
      const { items } = await all.find(Runs, { where: { id: { gt: '' } }, limit: 1 })
      if (items.length > 0) return
      await all
        .insert(SearchProgresses, { id: transcripts, after: '', done: true })
        .catch((error: unknown) => hasCode(error, 'DUPLICATE') || Promise.reject(error))
    },
    /** The run has ended, or has changed since; its document carries the mark. */
    note({ id, orgId }: Pick<Run, 'id' | 'orgId'>): void {
      if (waiting.size >= waitingMax) return
      waiting.set(id, { orgId })
      wake()
    },
    /** Call it before the texts under `prefix` are removed: the stored intent survives a crash. */
    async removing(scope: Org, prefix: string): Promise<() => void> {
      const removal = { id: clock.id(), orgId: scope.orgId, prefix, createdAt: clock.now() }
      await store.tenant(scope).insert(SearchRemovals, removal)
      return () => void remove(removal).catch(failed)
    },
    /** The title has changed. The session's document carries the mark. */
    renamed(session: Session): void {
      void writeTitles(session, [session]).catch(failed)
    },
    /** Does what other processes left undone, and the backfill. Each part is bounded. */
    async catchUp(): Promise<void> {
      const olderThan = { lt: clock.now() - staleMs }
      const all = store.system(transcriptsReason)
      await writeAll(
        (
          await all.find(Runs, {
            where: { unindexed: olderThan },
            orderBy: ['unindexed', 'asc'],
            limit: pageRuns,
          })
        ).items,
      )
      const { items: renamed } = await all.find(Sessions, {
        where: { unindexed: olderThan },
        orderBy: ['unindexed', 'asc'],
        limit: pageRuns,
      })
      for (const [orgId, sessions] of Map.groupBy(renamed, session => session.orgId))
        await writeTitles({ orgId }, sessions)
      for (const removal of (
        await all.find(SearchRemovals, {
          where: { createdAt: olderThan },
          orderBy: ['createdAt', 'asc'],
          limit: pageRuns,
        })
      ).items)
        await remove(removal)
      await goBack()
    },
    /** Starts the backfill anew, in the background. */
    async again(): Promise<void> {
      await store.system(transcriptsReason).remove(SearchProgresses, transcripts)
    },
  }
}
