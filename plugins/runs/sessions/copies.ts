// Texts of copied runs. A copy in a fork has no texts of its own: it names the run that holds them.
// When that run is removed, the copy inherits its texts.
import type { WireEvent } from '#kernel'
import type { Eventlog } from '#ports/eventlog.ts'
import type { ScopedStorage, Store } from '#ports/storage.ts'
import { Runs, streamsOf, type Run } from '../collections.ts'
import type { SeenEnded } from '../journal/outcome.ts'
import type { Texts } from '../journal/texts.ts'

const togetherMax = 200

/** Finds the runs that exist among these ids. */
async function byIds(own: Store, ids: readonly string[]): Promise<Map<string, Run>> {
  const found = new Map<string, Run>()
  for (let at = 0; at < ids.length; at += togetherMax) {
    const { items } = await own.find(Runs, {
      where: { id: { in: ids.slice(at, at + togetherMax) } },
      limit: togetherMax,
    })
    for (const run of items) found.set(run.id, run)
  }
  return found
}

export type ReadTexts = (scope: { readonly orgId: string }, runs: readonly Run[]) => Promise<Run[]>
/**
 * Returns the runs, and gives copies the texts of their sources. A source whose document is still
 * open gets its end from its log.
 */
export const createReadTexts =
  ({ store, ended }: { store: ScopedStorage; ended: SeenEnded }): ReadTexts =>
  async (scope, runs) => {
    const wanted = [...new Set(runs.flatMap(({ source }) => source ?? []))]
    if (wanted.length === 0) return [...runs]
    const found = await Promise.all(
      (await byIds(store.tenant(scope), wanted)).values().map(run => ended(run)),
    )
    const sources = new Map(found.map(run => [run.id, run]))
    return runs.map(run => {
      const source = run.source === undefined ? undefined : sources.get(run.source)
      return source
        ? {
            ...run,
            request: { ...run.request, message: source.request.message },
            answer: source.answer ?? '',
          }
        : run
    })
  }

/** Runs whose texts are read at a time. The texts of one run may take megabytes. */
const wholeTogether = 4
type Reading = { readonly ended: SeenEnded; readonly readTexts: ReadTexts }
/** Yields the runs with their texts, in order. A caller that has enough stops reading. */
export async function* withTexts(
  scope: { readonly orgId: string },
  runs: readonly Run[],
  { ended, readTexts }: Reading,
): AsyncGenerator<Run> {
  for (let at = 0; at < runs.length; at += wholeTogether)
    yield* await readTexts(
      scope,
      await Promise.all(runs.slice(at, at + wholeTogether).map(run => ended(run))),
    )
}

type Removing = { readonly log: Eventlog; readonly texts: Texts; readonly now: number }

/**
 * Gives one of these copies the texts of `gone`, and returns that copy. Undefined: every copy was
 * removed, or has another source by now.
 */
async function inherit(
  own: Store,
  { texts, now }: Removing,
  gone: Run,
  copies: readonly Run[],
): Promise<Run | undefined> {
  const {
    id: source,
    request: { message },
    answer = '',
  } = gone
  for (const copy of copies) {
    const { request, long, ...stored } = await texts.stored({
      ...copy,
      request: { ...copy.request, message },
      answer,
    })
    const set = { request, answer: stored.answer, ...(long ? { long } : {}), unindexed: now }
    const heir = await own.update(Runs, copy.id, { set, unset: ['source'] }, { if: { source } })
    if (heir) return heir
    // The copy was removed meanwhile. Nobody else knows of the texts that were just written for it.
    if (long && !(await own.get(Runs, copy.id))) await texts.remove({ ...copy, long })
  }
  return undefined
}
/**
 * Hands down the texts of these runs to their copies. One copy of each run inherits the texts, and
 * the others name that copy as their source.
 */
async function bequeath(own: Store, removing: Removing, runs: readonly Run[]): Promise<void> {
  const gone = new Map(runs.map(run => [run.id, run]))
  while (gone.size > 0) {
    const { items } = await own.find(Runs, {
      where: { source: { in: [...gone.keys()] } },
      limit: togetherMax,
    })
    if (items.length === 0) return
    for (const [source, copies] of Map.groupBy(items, run => run.source!)) {
      const heir = await inherit(own, removing, gone.get(source)!, copies)
      if (!heir) continue
      for (const { id } of copies)
        if (id !== heir.id)
          await own.update(Runs, id, { set: { source: heir.id } }, { if: { source } })
      // The heir may have been removed before the others named it. Its remover found no copies of
      // it then, so this loop takes over.
      if (!(await own.get(Runs, heir.id))) gone.set(heir.id, { ...gone.get(source)!, id: heir.id })
    }
  }
}
/**
 * Removes a copy without texts. If the copy inherits texts meanwhile, it is removed like a run that
 * has texts.
 */
async function removeCopy(own: Store, removing: Removing, copy: Run): Promise<void> {
  for (let seen: Run | undefined = copy; seen; seen = await own.get(Runs, copy.id)) {
    if (seen.source === undefined) return removeTogether(own, removing, [seen])
    if (await own.remove(Runs, seen.id, { if: { source: seen.source } })) return
  }
}
/**
 * Removes runs. A copy that is made meanwhile either inherits, or its maker finds that the source
 * is gone.
 */
async function removeTogether(own: Store, removing: Removing, runs: readonly Run[]): Promise<void> {
  const inherited = await Promise.all(
    runs.filter(({ source }) => source === undefined).map(run => removing.texts.whole(run)),
  )
  await bequeath(own, removing, inherited)
  for (const run of runs) {
    if (run.source !== undefined) {
      await removeCopy(own, removing, run)
      continue
    }
    for (const stream of streamsOf(run)) await removing.log.remove(stream)
    await own.remove(Runs, run.id)
  }
  await bequeath(own, removing, inherited)
}

/**
 * Removes runs with their logs, but nothing that copies of them need. Long texts are in memory for
 * one run at a time.
 */
export async function removeRuns(
  own: Store,
  removing: Removing,
  runs: readonly Run[],
): Promise<void> {
  await removeTogether(
    own,
    removing,
    runs.filter(({ long }) => long === undefined),
  )
  for (const run of runs) if (run.long !== undefined) await removeTogether(own, removing, [run])
}

/** Whether the sources of all these copies exist. */
export async function hasSources(own: Store, copies: readonly Run[]): Promise<boolean> {
  const ids = [...new Set(copies.flatMap(({ source }) => source ?? []))]
  return (await byIds(own, ids)).size === ids.length
}

/**
 * The events that a copy in a fork shows, because it has no log: its answer, a usage of nothing,
 * and its end.
 */
export const copiedEvents = ({
  answer = '',
  answerCut,
  model,
  status,
  sessionId,
}: Run): WireEvent[] =>
  [
    ...(answer && !answerCut
      ? [{ type: 'token', data: { text: answer, step: 0, attempt: 1 } }]
      : []),
    {
      type: 'usage',
      data: {
        input_tokens: 0,
        output_tokens: 0,
        total_tokens: 0,
        credits: 0,
        model,
        model_calls: 0,
      },
    },
    {
      type: 'done',
      data: { status: status === 'cancelled' ? 'cancelled' : 'done', session_id: sessionId },
    },
  ].map((one, at) => ({ seq: at + 1, ...one }))
