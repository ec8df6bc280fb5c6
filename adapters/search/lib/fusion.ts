// Merges the results of word search and vector search into one answer.
import { searchLimits, type Hit, type Hits } from '#ports/search.ts'
import { compareText } from '../../_shared/documents.ts'
import type { Analyser } from '../analysis/analyser.ts'
import type { CheckedQuery } from './queries.ts'

/** A result of an index. */
export type Found = { readonly id: string; readonly score: number }
/**
 * Of Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual
 * Rank Learning Methods", SIGIR 2009.
 */
const k = 60
/** Highlights that one hit has at most. */
export const highlightsMax = 100

/**
 * Orders results, the best first. Scores are compared in single precision, as in Lucene, because
 * the order of a sum changes its last bits.
 */
export const byScore = (a: Found, b: Found): number =>
  Math.fround(b.score) - Math.fround(a.score) || compareText(a.id, b.id)

/**
 * Merges lists that are ordered best first. A result in both lists outranks the first of one list.
 */
export function fused(lists: readonly (readonly Found[])[]): Found[] {
  const scores = new Map<string, number>()
  for (const list of lists)
    for (const [at, { id }] of list.entries())
      scores.set(id, (scores.get(id) ?? 0) + 1 / (k + at + 1))
  return [...scores].map(([id, score]) => ({ id, score })).sort(byScore)
}

/**
 * Hits of a list in the order of ids. They have no score, and show only where the first word is.
 */
export const listed = (
  ids: readonly string[],
  more: boolean,
  of: Parameters<typeof hitsOf>[2],
  analyser: Analyser,
  words: readonly (readonly string[])[],
): Hits =>
  hitsOf(
    ids.map(id => ({ id, score: 0 })),
    more,
    of,
    analyser,
    words.flat(),
    1,
  )

/**
 * Cuts a page. The lists hold every result that can be reached, so the order does not depend on the
 * size of a page.
 */
export function pageOf<T extends Found>(
  lists: readonly (readonly T[])[],
  { offset, limit }: Pick<CheckedQuery, 'offset' | 'limit'>,
): { best: Found[]; more: boolean } {
  const all = (lists.length === 1 ? lists[0]! : fused(lists)).slice(0, searchLimits.depthMax)
  return { best: all.slice(offset, offset + limit), more: all.length > offset + limit }
}

export const hitsOf = (
  best: readonly Found[],
  more: boolean,
  of: (id: string) => Pick<Hit, 'text' | 'language' | 'fields'> | undefined,
  analyser: Analyser,
  terms: readonly string[],
  rangesMax = highlightsMax,
): Hits => {
  const wanted = new Set(terms)
  const hits = best.flatMap(({ id, score }): Hit[] => {
    const kept = of(id)
    return kept
      ? [
          {
            id,
            score,
            ...kept,
            highlights:
              wanted.size === 0 ? [] : analyser.ranges(kept.text, kept.language, wanted, rangesMax),
          },
        ]
      : []
  })
  return { hits, more }
}
