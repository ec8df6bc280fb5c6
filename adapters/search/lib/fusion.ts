// From what was found in one way or two to one answer.
import { searchLimits, type Hit, type Hits } from '#ports/search.ts'
import { compareText } from '../../_shared/documents.ts'
import type { Analyser } from '../analysis/analyser.ts'
import type { CheckedQuery } from './checks.ts'

/** What an index answers. */
export type Found = { readonly id: string; readonly score: number }
/**
 * Of Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet and individual
 * Rank Learning Methods", SIGIR 2009.
 */
const k = 60
/** Highlights that one hit has at most. */
export const highlightsMax = 100

/**
 * Best first. Scores are compared in single precision, as Lucene has them: sums in another order
 * are no other score.
 */
export const byScore = (a: Found, b: Found): number =>
  Math.fround(b.score) - Math.fround(a.score) || compareText(a.id, b.id)

/** Each list best first. What stands in both is worth more than what leads in one. */
export function fused(lists: readonly (readonly Found[])[]): Found[] {
  const scores = new Map<string, number>()
  for (const list of lists)
    for (const [at, { id }] of list.entries())
      scores.set(id, (scores.get(id) ?? 0) + 1 / (k + at + 1))
  return [...scores].map(([id, score]) => ({ id, score })).sort(byScore)
}

/** What a list in the order of ids says: no score, and where the first word stands. */
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
 * The lists hold as many as can be reached, so that a page is the same part of the same order
 * whatever its size.
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
