// Queries of one generation of a collection on OpenSearch: ranked hits, matches and counts.
import { searchLimits, type Hits } from '#ports/search.ts'
import type { Where } from '#ports/storage.ts'
import type { CheckedMatch, CheckedQuery } from '../lib/checks.ts'
import { byScore, hitsOf, listed, pageOf, type Found } from '../lib/fusion.ts'
import type { Stored } from './bulk.ts'
import { isBusy, orGone, refusalOf, type Connection } from './connection.ts'
import { conditions, matching } from './filters.ts'
import type { Known } from './indices.ts'

type Answer = {
  readonly status: number
  readonly error?: unknown
  readonly hits: {
    readonly hits: readonly { readonly _score: number; readonly sort: readonly [number, string] }[]
  }
}

const wanted = searchLimits.depthMax + 1

export function createQueries({ call, pause }: Connection) {
  /**
   * Searches the known generation by its own name. An alias could point to a newer one, whose terms
   * differ; a removed index reports that.
   */
  const ranked = async (
    { index }: Known,
    { mode, vector, where, cosineMin }: CheckedQuery,
    terms: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<Found[][]> => {
    const filter = conditions(where)
    const order = {
      size: wanted,
      _source: false,
      track_total_hits: false,
      track_scores: true,
      sort: [{ _score: 'desc' }, { id: 'asc' }],
    }
    const words = {
      bool: {
        should: terms.map(term => ({ term: { terms: term } })),
        minimum_should_match: 1,
        filter,
      },
    }
    const near = {
      knn: {
        vector: {
          vector,
          k: wanted,
          ...(filter.length > 0 ? { filter: { bool: { filter } } } : {}),
        },
      },
    }
    const asked = [
      ...(mode === 'vector' || terms.length === 0 ? [] : [{ query: words, isCosine: false }]),
      ...(mode === 'lexical' ? [] : [{ query: near, isCosine: true }]),
    ]
    if (asked.length === 0) return [[]]
    const header = {
      index,
      search_type: 'dfs_query_then_fetch',
      allow_partial_search_results: false,
    }
    for (let attempt = 1; ; attempt++) {
      const { responses } = await call<{ responses: Answer[] }>('POST', '/_msearch', {
        lines: asked.flatMap(({ query: clause }) => [header, { query: clause, ...order }]),
        signal,
      })
      const refusal = responses.flatMap(({ status, error }) =>
        error === undefined ? [] : [refusalOf(status, error)],
      )[0]
      if (!refusal)
        return responses.map(({ hits: { hits } }, at) => {
          // Lucene's score of a cosine is (1 + cosine) / 2.
          const found = hits.map(({ _score, sort: [, id] }) => ({
            id,
            score: asked[at]!.isCosine ? 2 * _score - 1 : _score,
          }))
          return (
            asked[at]!.isCosine
              ? found.filter(({ score }) => Math.fround(score) >= Math.fround(cosineMin))
              : found
          ).sort(byScore)
        })
      if (!isBusy(refusal) || attempt >= 5) orGone(refusal)
      await pause(attempt, signal)
    }
  }
  const textsOf = async (
    { index }: Known,
    ids: readonly string[],
    signal: AbortSignal | undefined,
  ) => {
    if (ids.length === 0) return new Map<string, Pick<Stored, 'text' | 'language' | 'fields'>>()
    const { docs } = await call<{ docs: { _id: string; _source?: Stored; error?: unknown }[] }>(
      'POST',
      `/${index}/_mget`,
      { body: { ids }, query: { _source_excludes: 'vector' }, signal },
      orGone,
    )
    const gone = docs.find(({ error }) => error !== undefined)
    if (gone) orGone(refusalOf(404, gone.error))
    return new Map(
      docs.flatMap(({ _id, _source }) =>
        _source
          ? [
              [
                _id,
                { text: _source.text, language: _source.language, fields: _source.fields },
              ] as const,
            ]
          : [],
      ),
    )
  }
  const match = async (
    known: Known,
    { text, where, before, limit }: CheckedMatch,
    signal: AbortSignal | undefined,
  ): Promise<Hits> => {
    const words = known.analyser.queryWords(text, searchLimits.queryTermsMax)
    if (words.length === 0) return { hits: [], more: false }
    const filter = [...words.map(terms => ({ terms: { terms } })), ...conditions(where)]
    const {
      hits: { hits },
    } = await call<{ hits: { hits: { sort: [string] }[] } }>(
      'POST',
      `/${known.index}/_search`,
      {
        body: {
          size: limit + 1,
          _source: false,
          track_total_hits: false,
          sort: [{ id: 'desc' }],
          query: { bool: { filter } },
          ...(before === undefined ? {} : { search_after: [before] }),
        },
        query: { allow_partial_search_results: false },
        signal,
      },
      orGone,
    )
    const ids = hits.slice(0, limit).map(({ sort: [id] }) => id)
    const kept = await textsOf(known, ids, signal)
    return listed(ids, hits.length > limit, id => kept.get(id), known.analyser, words)
  }
  const query = async (
    known: Known,
    asked: CheckedQuery,
    signal: AbortSignal | undefined,
  ): Promise<Hits> => {
    const terms = known.analyser.queryTerms(asked.text, searchLimits.queryTermsMax)
    const { best, more } = pageOf(await ranked(known, asked, terms, signal), asked)
    const kept = await textsOf(
      known,
      best.map(({ id }) => id),
      signal,
    )
    return hitsOf(best, more, id => kept.get(id), known.analyser, terms)
  }
  /**
   * `_count` leaves out a shard that is away and adds up the others, so a search counts instead.
   */
  const counted = async ({ index }: Known, where: Where): Promise<number> =>
    (
      await call<{ hits: { total: { value: number } } }>(
        'POST',
        `/${index}/_search`,
        {
          body: { size: 0, track_total_hits: true, query: matching(where) },
          query: { allow_partial_search_results: false },
        },
        orGone,
      )
    ).hits.total.value
  return { query, match, counted }
}
