// What was said in runs. A copy in a forked conversation has no texts of its own: it names the run
// that has them, and inherits them when that one goes.
import type { WireEvent } from '#kernel'
import type { Eventlog } from '#ports/eventlog.ts'
import type { ScopedStorage, Store } from '#ports/storage.ts'
import { Runs, streamsOf, type Run } from '../collections.ts'
import type { SeenEnded } from '../journal/outcome.ts'
import type { Texts } from '../journal/texts.ts'

const togetherMax = 200

/** Those of these ids that are there. */
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
 * The runs as they are, copies with the texts of their sources; the end of a source may stand in
 * its log alone.
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

/** Runs whose texts are read at a time: those of one may take megabytes. */
const wholeTogether = 4
type Reading = { readonly ended: SeenEnded; readonly readTexts: ReadTexts }
/** The runs with their texts, in their order. Whoever has enough of them reads no further. */
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
 * One of these copies has the texts of `gone` from now on. Undefined where each was removed, or has
 * a source again.
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
    // It was removed meanwhile, and nobody else knows of the texts that were just written for it.
    if (long && !(await own.get(Runs, copy.id))) await texts.remove({ ...copy, long })
  }
  return undefined
}
/** Copies of these runs get their texts: one of each has them from now on, the others name it. */
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
      // Whoever removed the heir before the others named it found no copy of it.
      if (!(await own.get(Runs, heir.id))) gone.set(heir.id, { ...gone.get(source)!, id: heir.id })
    }
  }
}
/**
 * Of a copy without texts. It may inherit some at any moment: then it is removed like every run
 * that has some.
 */
async function removeCopy(own: Store, removing: Removing, copy: Run): Promise<void> {
  for (let seen: Run | undefined = copy; seen; seen = await own.get(Runs, copy.id)) {
    if (seen.source === undefined) return removeTogether(own, removing, [seen])
    if (await own.remove(Runs, seen.id, { if: { source: seen.source } })) return
  }
}
/** A copy that is being made meanwhile either inherits, or its maker finds the source gone. */
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
 * Removes runs with their logs, and nothing that copies of them need. Long texts are in memory one
 * run at a time.
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

/** Are the sources of these copies all there? */
export async function hasSources(own: Store, copies: readonly Run[]): Promise<boolean> {
  const ids = [...new Set(copies.flatMap(({ source }) => source ?? []))]
  return (await byIds(own, ids)).size === ids.length
}

/**
 * What a copy in a forked conversation shows: its answer, that it cost nothing, and its end. It has
 * no log.
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
