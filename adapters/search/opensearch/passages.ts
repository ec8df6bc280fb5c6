// One organisation's collections on OpenSearch.
import type { Clock } from '#ports/clock.ts'
import type { Passages } from '#ports/search.ts'
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
  type Kept,
} from '../lib/checks.ts'
import { analysed } from '../analysis/analysed.ts'
import { isBlocked, type createBulk, type Stored } from './bulk.ts'
import { isBusy, orGone, refusalOf, toFault, unavailable, type Connection } from './connection.ts'
import { matching } from './filters.ts'
import type { Indices } from './indices.ts'
import { createQueries } from './queries.ts'
import type { createGenerations } from './reindex.ts'

type Parts = {
  readonly connection: Connection
  readonly indices: Indices
  readonly bulk: ReturnType<typeof createBulk>
  readonly generations: ReturnType<typeof createGenerations>
  readonly clock: Clock
  readonly check: () => void
}
type Outcome = {
  readonly deleted: number
  readonly version_conflicts: number
  readonly failures: readonly { readonly status: number; readonly cause: unknown }[]
}

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
  { connection, indices, bulk, generations, clock, check }: Parts,
): Passages => {
  const { query, match, counted } = createQueries(connection)
  const { call, pause } = connection
  const named = (collection: string) => {
    check()
    return checkedCollection(collection)
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
      return indices.on(org, collection, known =>
        counted(known, checkedWhere(where, known.meta.spec)),
      )
    },
  }
}
