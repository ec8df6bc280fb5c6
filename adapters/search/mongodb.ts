// Search in MongoDB, in any deployment. One collection holds passages with an index of their terms,
// another one lists the collections. A passage is one document, so no transaction is needed.
import { defineAdapter, type Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import { searchLimits, type Hits, type Passages, type SearchEngine } from '#ports/search.ts'
import { analysed } from './analysis/analysed.ts'
import { checkedOrganisation } from '../_shared/blob-names.ts'
import { closableWork } from '../_shared/closable.ts'
import { connect, orFault, urlOptions, type Connection } from '../_shared/mongodb/database.ts'
import { checkBatch, checkedIds, checkedPage, sorted, type Kept } from './lib/passages.ts'
import { checkedMatch, checkedQuery, checkedWhere } from './lib/queries.ts'
import { checkedCollection, checkedSpec, keptFields, saidLanguage } from './lib/specs.ts'
import { hitsOf, listed, pageOf } from './lib/fusion.ts'
import { createCatalogue, type Known, type Refill, type Stored } from './mongodb/catalogue.ts'
import {
  binaryOf,
  byVector,
  byWords,
  counted,
  filterOf,
  givenOf,
  holding,
} from './mongodb/passages.ts'

const serviceName = 'The search index'
/** Passages that are read, analysed and written in one batch. */
const together = 200

type Source = Pick<Kept, 'id' | 'text' | 'fields'> & {
  readonly said: Stored['said']
  readonly vector?: Stored['vector']
}

export async function mongoSearch({
  connection: { db, ping, close },
  clock,
}: {
  connection: Connection
  clock: Clock
  log?: Log
}): Promise<SearchEngine> {
  const { check, track, signal: closing, close: end } = closableWork(serviceName)
  const catalogue = createCatalogue(db, clock, closing)
  const { passages } = catalogue
  await catalogue.ready()

  /** Adds or replaces passages. Each passage is one write. */
  const write = async (
    at: string,
    analyser: Known['analyser'],
    list: readonly Source[],
    signal?: AbortSignal,
  ): Promise<void> => {
    for (let from = 0; from < list.length; from += together) {
      signal?.throwIfAborted()
      const part = await analysed(
        list.slice(from, from + together).map(one => ({ ...one, language: one.said })),
        analyser,
      )
      const documents = part.map(({ id, text, said, fields, vector, language, terms }): Stored => {
        const all = terms === '' ? [] : terms.split(' ')
        return {
          _id: at + id,
          g: at,
          key: id,
          text,
          language,
          fields,
          length: all.length,
          terms: counted(all),
          ...(said ? { said } : {}),
          ...(vector ? { vector } : {}),
        }
      })
      signal?.throwIfAborted()
      const writes = documents.map(replacement => ({
        replaceOne: { filter: { _id: replacement._id }, replacement, upsert: true },
      }))
      await orFault(passages.bulkWrite(writes, { ordered: false }))
    }
  }
  const refill: Refill = async (from, { at, spec, analyser }, renew) => {
    const keepsVectors = from.spec.dimensions === spec.dimensions
    for (let after = from.entry.at; ; ) {
      const some = await orFault(
        passages
          .find(
            { g: from.entry.at, _id: { $gt: after } },
            { projection: { terms: 0 }, sort: { _id: 1 }, limit: together },
          )
          .toArray(),
      )
      if (some.length === 0) return
      await write(
        at,
        analyser,
        some.map(({ key, text, said, fields, vector }) => ({
          id: key,
          text,
          said: saidLanguage(said, spec),
          fields: keptFields(fields, spec),
          ...(keepsVectors && vector ? { vector } : {}),
        })),
      )
      await renew()
      after = some.at(-1)!._id
    }
  }
  const textsOf = async ({ entry: { at } }: Known, ids: readonly string[]) => {
    const found =
      ids.length === 0
        ? []
        : await orFault(
            passages
              .find(
                { _id: { $in: ids.map(id => at + id) } },
                { projection: { terms: 0, vector: 0 } },
              )
              .toArray(),
          )
    return new Map(
      found.map(({ key, text, language, fields }) => [key, { text, language, fields }]),
    )
  }

  const within = (orgId: string): Passages => {
    check()
    const org = checkedOrganisation(orgId)
    const named = (collection: string, signal?: AbortSignal) => {
      check()
      signal?.throwIfAborted()
      return checkedCollection(collection)
    }
    /** Abandoned work is awaited all the same, so that it cannot undo what later calls wrote. */
    const given = <T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> =>
      track(work).then(done => {
        signal?.throwIfAborted()
        return done
      })
    return {
      async define(collection, spec) {
        const name = named(collection)
        await track(catalogue.define(org, name, checkedSpec(spec), refill))
      },
      async drop(collection) {
        return track(catalogue.drop(org, named(collection)))
      },
      async collections() {
        check()
        return catalogue.names(org)
      },
      async index(collection, list, { signal } = {}) {
        const name = named(collection, signal)
        checkBatch(list)
        const { spec } = await catalogue.of(org, name)
        const first = sorted(list, spec, name)
        await given(
          catalogue.writing(org, name, async ({ entry, spec: now, analyser }) => {
            await write(
              entry.at,
              analyser,
              sorted(list, now, name).good.map(({ id, text, language, fields, vector }) => ({
                id,
                text,
                fields,
                said: language,
                ...(vector ? { vector: binaryOf(vector) } : {}),
              })),
              signal,
            )
            return 0
          }),
          signal,
        )
        return { indexed: first.indexed, errors: first.errors }
      },
      async remove(collection, which) {
        return track(
          catalogue.writing(org, named(collection), async ({ entry: { at }, spec }) => {
            const filter =
              'ids' in which
                ? { _id: { $in: checkedIds(which.ids).map(id => at + id) } }
                : filterOf(at, checkedWhere(which.where, spec))
            return (await orFault(passages.deleteMany(filter as never))).deletedCount
          }),
        )
      },
      async query(collection, { signal, ...query }): Promise<Hits> {
        return given(
          catalogue.reading(org, named(collection, signal), async known => {
            const checked = checkedQuery(query, known.spec)
            const { mode, text, vector, where, cosineMin } = checked
            const terms = known.analyser.queryTerms(text, searchLimits.queryTermsMax)
            const lists = [
              ...(mode === 'vector' ? [] : [await byWords(passages, known, terms, where)]),
              ...(mode === 'lexical'
                ? []
                : [await byVector(passages, known, vector, where, cosineMin)]),
            ]
            const { best, more } = pageOf(lists, checked)
            const kept = await textsOf(
              known,
              best.map(({ id }) => id),
            )
            return hitsOf(best, more, id => kept.get(id), known.analyser, terms)
          }),
          signal,
        )
      },
      async match(collection, { signal, ...query }): Promise<Hits> {
        return given(
          catalogue.reading(org, named(collection, signal), async known => {
            const checked = checkedMatch(query, known.spec)
            const words = known.analyser.queryWords(checked.text, searchLimits.queryTermsMax)
            if (words.length === 0) return { hits: [], more: false }
            const found = await holding(passages, known, words, checked)
            const kept = new Map(
              found.map(({ key, text, language, fields }) => [key, { text, language, fields }]),
            )
            return listed(
              found.slice(0, checked.limit).map(({ key }) => key),
              found.length > checked.limit,
              id => kept.get(id),
              known.analyser,
              words,
            )
          }),
          signal,
        )
      },
      async count(collection, where = {}) {
        return track(
          catalogue.reading(org, named(collection), ({ entry: { at }, spec }) =>
            orFault(passages.countDocuments(filterOf(at, checkedWhere(where, spec)))),
          ),
        )
      },
    }
  }
  return {
    within,
    async addresses({ after = '', limit }) {
      check()
      return catalogue.addresses(after, limit)
    },
    async contents(orgId, collection, page) {
      check()
      const { after, limit } = checkedPage(page)
      return catalogue.reading(
        checkedOrganisation(orgId),
        checkedCollection(collection),
        async ({ entry: { at }, spec }) => ({
          spec,
          passages: (
            await orFault(
              passages
                .find(
                  { g: at, _id: { $gt: at + after } },
                  { projection: { terms: 0 }, sort: { _id: 1 }, limit },
                )
                .toArray(),
            )
          ).map(givenOf),
        }),
      )
    },
    async ping() {
      check()
      await ping()
    },
    close: () => end(close),
  }
}

export default defineAdapter<SearchEngine>({
  port: 'search',
  scheme: 'mongodb',
  options: urlOptions,
  open: async ({ url, clock }) => {
    const connection = await connect(url)
    try {
      return await mongoSearch({ connection, clock })
    } catch (error) {
      await connection.close()
      throw error
    }
  },
})
