// The embedded search index on one connection, in a thread or in memory.
import type { DatabaseSync } from 'node:sqlite'
import {
  searchLimits,
  type CollectionSpec,
  type Contents,
  type Hits,
  type Language,
  type MatchQuery,
  type Passage,
  type SearchQuery,
} from '#ports/search.ts'
import type { Where } from '#ports/storage.ts'
import { analysisVersion, createAnalysers, type Analyser } from '../analysis/analyser.ts'
import { checkBatch, checkedIds, sorted, type Paged } from '../lib/passages.ts'
import { checkedMatch, checkedQuery, checkedWhere } from '../lib/queries.ts'
import {
  checkedSpec,
  keptFields,
  notFound,
  saidLanguage,
  sameSpec,
  type Fields,
} from '../lib/specs.ts'
import { hitsOf, listed, pageOf } from '../lib/fusion.ts'
import { failureOf } from '../../_shared/sqlite/failures.ts'
import type { Failure } from '../../_shared/sqlite/protocol.ts'
import { holding } from './matching.ts'
import { byVector, byWords, count } from './ranking.ts'
import {
  drop,
  find,
  make,
  passageOf,
  read,
  removeWhich,
  rows,
  select,
  writer,
  type Passage as Stored,
  type Row,
  type Table,
} from './tables.ts'

/** The result of indexing, as threads exchange it. */
export type Indexed = {
  readonly indexed: number
  readonly errors: readonly {
    readonly at: number
    readonly id: string
    readonly failure: Failure
  }[]
}

/** Calls run one after the other, because writes change tables that the next call reads. */
export function createIndex(db: DatabaseSync) {
  const analysers = createAnalysers()
  const of = (org: string, collection: string): Table => {
    const table = find(db, org, collection)
    if (!table) throw notFound()
    return table
  }
  /** Runs `act` in a transaction. */
  const together = <T>(begin: string, act: () => T): T => {
    db.exec(begin)
    try {
      const done = act()
      db.exec('COMMIT')
      return done
    } catch (error) {
      if (db.isTransaction) db.exec('ROLLBACK')
      throw error
    }
  }
  /** Hands every passage of the former collection to `put`, to be analysed anew. */
  const refill = (
    before: Table,
    table: Table,
    put: (passage: Stored) => void,
    languageOf: (text: string) => Stored['language'],
  ) => {
    const { spec } = table
    const keepsVectors = before.spec.dimensions === spec.dimensions
    const all = select(
      db,
      `SELECT id, text, said, fields, vector FROM p_${before.at} LEFT JOIN v_${before.at} ` +
        'USING (row)',
    ).iterate() as Iterable<unknown> as Iterable<Row>
    for (const [id, text, said, fields, vector] of all) {
      const bytes = vector as Uint8Array | null
      const language = saidLanguage(said as Language | null, spec)
      put({
        id: id as string,
        text: text as string,
        fields: keptFields(JSON.parse(fields as string) as Fields, spec),
        said: language,
        language: language ?? languageOf(text as string),
        vector:
          keepsVectors && bytes
            ? new Float32Array(bytes.buffer, bytes.byteOffset, spec.dimensions)
            : undefined,
      })
    }
  }

  const textsOf = ({ at }: Table, ids: readonly string[]) =>
    new Map(
      rows(
        db,
        `SELECT id, text, language, fields FROM p_${at} WHERE id IN (SELECT value FROM ` +
          'json_each(?))',
        JSON.stringify(ids),
      ).map(([id, text, language, fields]) => [
        id,
        {
          text: text as string,
          language: language as Stored['language'],
          fields: JSON.parse(fields as string) as Fields,
        },
      ]),
    )
  /** Answers a query within one transaction, so that the parts of an answer fit together. */
  const asking = async (
    org: string,
    collection: string,
    act: (table: Table, analyser: Analyser) => Hits,
  ): Promise<Hits> => {
    for (;;) {
      const { languages } = of(org, collection).spec
      const analyser = await analysers(languages)
      // The collection may have changed while a language was loaded.
      const answer = together('BEGIN', () => {
        const table = of(org, collection)
        return table.spec.languages.join() === languages.join() ? act(table, analyser) : undefined
      })
      if (answer) return answer
    }
  }

  return {
    async define(org: string, collection: string, given: CollectionSpec): Promise<void> {
      const spec = checkedSpec(given)
      const analyser = await analysers(spec.languages)
      const before = find(db, org, collection)
      if (before && sameSpec(before.spec, spec) && before.analysis === analysisVersion) return
      together('BEGIN IMMEDIATE', () => {
        db.prepare('DELETE FROM collections WHERE org = ? AND name = ?').run(org, collection)
        const at = Number(
          db
            .prepare('INSERT INTO collections (org, name, spec, analysis) VALUES (?, ?, ?, ?)')
            .run(org, collection, JSON.stringify(spec), analysisVersion).lastInsertRowid,
        )
        const table: Table = { at, spec, analysis: analysisVersion }
        make(db, table)
        if (!before) return
        refill(before, table, writer(db, table, analyser).put, analyser.languageOf)
        drop(db, before.at)
      })
    },
    async drop(org: string, collection: string): Promise<boolean> {
      const table = find(db, org, collection)
      if (table)
        together('BEGIN IMMEDIATE', () => {
          db.prepare('DELETE FROM collections WHERE at = ?').run(table.at)
          drop(db, table.at)
        })
      return table !== undefined
    },
    async collections(org: string): Promise<string[]> {
      return rows(db, 'SELECT name FROM collections WHERE org = ? ORDER BY name', org).map(
        ([name]) => name as string,
      )
    },
    async addresses(after: string, limit: number): Promise<string[]> {
      return rows(
        db,
        `SELECT org || '/' || name AS address FROM collections WHERE address > ? ORDER BY ` +
          'address LIMIT ?',
        after,
        limit,
      ).map(([address]) => address as string)
    },
    async contents(org: string, collection: string, page: Paged): Promise<Contents> {
      return together('BEGIN', () => {
        const table = of(org, collection)
        return { spec: table.spec, passages: read(db, table, page) }
      })
    },
    async index(org: string, collection: string, passages: readonly Passage[]): Promise<Indexed> {
      checkBatch(passages)
      const table = of(org, collection)
      const analyser = await analysers(table.spec.languages)
      const { good, indexed, errors } = sorted(passages, table.spec, collection)
      if (good.length > 0)
        together('BEGIN IMMEDIATE', () => {
          const { put } = writer(db, table, analyser)
          for (const passage of good) put(passageOf(passage, analyser))
        })
      return {
        indexed,
        errors: errors.map(({ at, id, error }) => ({ at, id, failure: failureOf(error) })),
      }
    },
    async remove(
      org: string,
      collection: string,
      which: { readonly ids: readonly string[] } | { readonly where: Where },
    ): Promise<number> {
      const table = of(org, collection)
      const checked =
        'ids' in which
          ? { ids: checkedIds(which.ids) }
          : { where: checkedWhere(which.where, table.spec) }
      return together('BEGIN IMMEDIATE', () => removeWhich(db, table, checked))
    },
    query: (org: string, collection: string, query: SearchQuery): Promise<Hits> =>
      asking(org, collection, (table, analyser) => {
        const checked = checkedQuery(query, table.spec)
        const { mode, text, vector, where, cosineMin } = checked
        const terms = analyser.queryTerms(text, searchLimits.queryTermsMax)
        const lists = [
          ...(mode === 'vector' ? [] : [byWords(db, table, terms, where)]),
          ...(mode === 'lexical' ? [] : [byVector(db, table, vector, where, cosineMin)]),
        ]
        const { best, more } = pageOf(lists, checked)
        const kept = textsOf(
          table,
          best.map(({ id }) => id),
        )
        return hitsOf(best, more, id => kept.get(id), analyser, terms)
      }),
    match: (org: string, collection: string, query: MatchQuery): Promise<Hits> =>
      asking(org, collection, (table, analyser) => {
        const checked = checkedMatch(query, table.spec)
        const words = analyser.queryWords(checked.text, searchLimits.queryTermsMax)
        const { ids, more } = holding(db, table, words, checked)
        const kept = textsOf(table, ids)
        return listed(ids, more, id => kept.get(id), analyser, words)
      }),
    async count(org: string, collection: string, where: Where = {}): Promise<number> {
      return together('BEGIN', () => {
        const table = of(org, collection)
        return count(db, table, checkedWhere(where, table.spec))
      })
    },
  }
}
