// Writes the texts of one organisation's conversations into the search index, and removes them.
import type { SharedPassages, ScopedSearch, Passage } from '#ports/search.ts'
import type { ScopedStorage } from '#ports/storage.ts'
import { Runs, Sessions, type Run, type Session } from '../collections.ts'
import type { RunsConfig } from '../config.ts'
import type { Texts } from '../journal/texts.ts'
import { batches, passagesOf, placeOf, signs, titleOf } from './transcript-passages.ts'

/**
 * The collection in the index. Words are not stemmed: a message does not tell its language, and
 * names have no stem.
 */
export const transcripts = 'conversations'
const spec = { languages: ['none'] } as const
/** Runs that one write takes at most. */
export const runsTogether = 200

export type Org = { readonly orgId: string }
type Deps = {
  readonly store: ScopedStorage
  readonly search: ScopedSearch
  readonly texts: Texts
  readonly config: RunsConfig
  readonly signal: AbortSignal
}

const removeUnder = (index: SharedPassages, prefix: string) =>
  index.remove(transcripts, { where: { id: { prefix } } })

export function createTranscriptIndex({ store, search, texts, config, signal }: Deps) {
  let defined: Promise<void> | undefined

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
    for (const run of closed)
      if (run.answerCut) await removeUnder(index, placeOf.run(run) + signs.assistant)
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
    for (const run of closed) if (!left.has(run.id)) await removeUnder(index, placeOf.run(run))
  }

  return {
    indexOf,
    write,
    writeTitles,
    /** Removes all texts whose ids begin with `prefix`. */
    async remove(scope: Org, prefix: string): Promise<void> {
      await removeUnder(await indexOf(scope), prefix)
    },
  }
}
