// Decides when the texts of conversations enter the search index: written when a run ends, removed
// with the run. A mark on the run's document ensures it; the call after a run's end is a hint.
import { hasCode } from '#kernel'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { ScopedSearch } from '#ports/search.ts'
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
import { createTranscriptIndex, runsTogether, transcripts, type Org } from './transcript-index.ts'

export const transcriptsReason =
  'search: conversations that the index does not hold yet, or still holds, of every organisation'
/** Runs that wait in this process to be indexed. Others are found by their mark. */
const waitingMax = 5000
/** Background work reads so many runs at a time, and so many pages in one pass. */
const pageRuns = 200
const pagesAtOnce = 25
/** Work that is older than so many milliseconds was left by its process. */
const staleMs = 60_000

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
  const index = createTranscriptIndex({ store, search, texts, config, signal })
  // Holds ids, not documents. Documents that wait would outlive the young generation, and cost the
  // garbage collector more than reading them again.
  const waiting = new Map<string, Org>()
  let isWorking = false

  const writeAll = async (runs: readonly Run[]): Promise<void> => {
    for (const [orgId, some] of Map.groupBy(runs, run => run.orgId))
      for (let at = 0; at < some.length; at += runsTogether)
        await index.write({ orgId }, some.slice(at, at + runsTogether))
  }
  /** Writes the titles of conversations that these runs opened. */
  const writeTitlesOf = async (runs: readonly Run[]): Promise<void> => {
    const opening = runs.filter(({ opensSession }) => opensSession)
    for (const [orgId, some] of Map.groupBy(opening, run => run.orgId)) {
      const ids = some.map(({ sessionId }) => sessionId)
      const { items } = await store
        .tenant({ orgId })
        .find(Sessions, { where: { id: { in: ids } }, limit: pageRuns })
      await index.writeTitles({ orgId }, items)
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
      await index.write({ orgId }, items)
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
    await index.remove({ orgId }, prefix)
    await store.tenant({ orgId }).remove(SearchRemovals, id)
  }

  return {
    indexOf: index.indexOf,
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
      void index.writeTitles(session, [session]).catch(failed)
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
        await index.writeTitles({ orgId }, sessions)
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
