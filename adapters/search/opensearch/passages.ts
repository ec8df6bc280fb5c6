// One organisation's collections on OpenSearch.
import type { Clock } from '#ports/clock.ts'
import { searchLimits, type Hits, type Passages } from '#ports/search.ts'
import type { Where } from '#ports/storage.ts'
import {
  checkBatch,
  checkedCollection,
  checkedIds,
  checkedMatch,
  checkedQuery,
  checkedSpec,
  checkedWhere,
  sorted,
  type CheckedMatch,
  type CheckedQuery,
  type Kept,
} from '../lib/checks.ts'
import { byScore, hitsOf, listed, pageOf, type Found } from '../lib/fusion.ts'
import { analysed } from '../analysis/analysed.ts'
import { isBlocked, type createBulk, type Stored } from './bulk.ts'
import { isBusy, orGone, refusalOf, toFault, unavailable, type Connection } from './connection.ts'
import { conditions, matching } from './filters.ts'
import type { createGenerations } from './reindex.ts'
import type { Indices, Known } from './indices.ts'

type Parts = {
  readonly connection: Connection
  readonly indices: Indices
  readonly bulk: ReturnType<typeof createBulk>
  readonly generations: ReturnType<typeof createGenerations>
  readonly clock: Clock
  readonly check: () => void
}
type Answer = {
  readonly status: number
  readonly error?: unknown
  readonly hits: {
    readonly hits: readonly { readonly _score: number; readonly sort: readonly [number, string] }[]
  }
}
type Outcome = {
  readonly deleted: number
  readonly version_conflicts: number
  readonly failures: readonly { readonly status: number; readonly cause: unknown }[]
}

const wanted = searchLimits.depthMax + 1
/** Tries of a removal that meets writes, or a generation that is being exchanged. */
const removalsMax = 40

const storedOf = (
  { id, text, vector, fields, language }: Kept & { language: Stored['language'] },
  terms: string,
  said: Stored['said'],
  stamp: string,
): Stored => ({
  id,
  text,
  language,
  terms,
  fields,
  stamp,
  ...(said ? { said } : {}),
  ...(vector ? { vector } : {}),
})

export const passagesOf = (
  org: string,
  { connection: { call, pause }, indices, bulk, generations, clock, check }: Parts,
): Passages => {
  const named = (collection: string) => {
    check()
    return checkedCollection(collection)
  }
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
  const refresh = (alias: string) => call('POST', `/${alias}/_refresh`, {}, orGone)
  const removeWhere = async (alias: string, where: Where): Promise<number> => {
    let count = 0
    for (let attempt = 1; attempt <= removalsMax; attempt++) {
      // A filter does not find what was written since the last refresh.
      await refresh(alias)
      const {
        deleted,
        version_conflicts: conflicts,
        failures,
      } = await call<Outcome>(
        'POST',
        `/${alias}/_delete_by_query`,
        { body: { query: matching(where) }, query: { refresh: true, conflicts: 'proceed' } },
        refusal =>
          isBlocked(refusal) ? { deleted: 0, version_conflicts: 1, failures: [] } : orGone(refusal),
      )
      count += deleted
      const refusals = failures.map(({ status, cause }) => refusalOf(status, cause))
      const bad = refusals.find(refusal => !isBlocked(refusal) && !isBusy(refusal))
      if (bad) throw toFault(bad)
      if (conflicts === 0 && refusals.length === 0) return count
      await pause(Math.min(attempt, 3))
    }
    throw unavailable('the collection is being changed')
  }

  return {
    define: async (collection, spec) =>
      generations.define(org, named(collection), checkedSpec(spec)),
    drop: async collection => generations.drop(org, named(collection)),
    async collections() {
      check()
      return (await indices.collections(org)).sort((a, b) =>
        Buffer.compare(Buffer.from(a), Buffer.from(b)),
      )
    },
    async index(collection, passages, { signal } = {}) {
      named(collection)
      signal?.throwIfAborted()
      checkBatch(passages)
      return indices.on(org, collection, async known => {
        const { good, indexed, errors } = sorted(passages, known.meta.spec, collection)
        const puts = (await analysed(good, known.analyser)).map((one, at) => ({
          put: storedOf(one, one.terms, good[at]!.language, clock.id()),
        }))
        check()
        const { indexes, errors: refused } = await bulk(known.alias, puts, signal)
        // The writes went to another generation, which has other terms. They are repeated there.
        if ([...indexes].some(index => index !== known.index)) return 'moved'
        if (puts.length > 0) await refresh(known.alias)
        const also = good.flatMap(({ at, id }) =>
          refused.has(id) ? [{ at, id, error: refused.get(id)! }] : [],
        )
        return {
          indexed: indexed - also.length,
          errors: [...errors, ...also].sort((a, b) => a.at - b.at),
        }
      })
    },
    async remove(collection, which) {
      named(collection)
      return indices.on(org, collection, async ({ alias, meta }) => {
        if ('where' in which) return removeWhere(alias, checkedWhere(which.where, meta.spec))
        const { errors, removed } = await bulk(
          alias,
          checkedIds(which.ids).map(remove => ({ remove })),
        )
        for (const error of errors.values()) throw error
        await refresh(alias)
        return removed
      })
    },
    async query(collection, { signal, ...asked }) {
      named(collection)
      signal?.throwIfAborted()
      return indices.on(org, collection, known =>
        query(known, checkedQuery(asked, known.meta.spec), signal),
      )
    },
    async match(collection, { signal, ...asked }) {
      named(collection)
      signal?.throwIfAborted()
      return indices.on(org, collection, known =>
        match(known, checkedMatch(asked, known.meta.spec), signal),
      )
    },
    async count(collection, where = {}) {
      named(collection)
      // `_count` leaves out a shard that is away and adds up the others, so a search counts
      // instead.
      return indices.on(org, collection, async ({ index, meta }) => {
        const body = {
          size: 0,
          track_total_hits: true,
          query: matching(checkedWhere(where, meta.spec)),
        }
        return (
          await call<{ hits: { total: { value: number } } }>(
            'POST',
            `/${index}/_search`,
            { body, query: { allow_partial_search_results: false } },
            orGone,
          )
        ).hits.total.value
      })
    },
  }
}
