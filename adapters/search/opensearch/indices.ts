// A collection as an index behind an alias: its name, its mapping, and what this process caches of
// it.
import { createHash } from 'node:crypto'
import { hasCode } from '#contracts/faults.ts'
import type { Clock } from '#ports/clock.ts'
import { analysisVersion, createAnalysers, type Analyser } from '../analysis/analyser.ts'
import { createLru } from '../../_shared/lru.ts'
import { notFound, type Spec } from '../lib/specs.ts'
import { toFault, unavailable, type Asked, type Connection } from './connection.ts'

/**
 * The collection, and the analysis that made its terms. `beat` changes while the index is being
 * filled.
 */
export type Meta = {
  readonly org: string
  readonly collection: string
  readonly spec: Spec
  readonly analysis: number
  readonly beat?: string
}
/** `index` is the generation to which `alias` points. */
export type Known = {
  readonly alias: string
  readonly index: string
  readonly meta: Meta
  readonly analyser: Analyser
  readonly isBlocked: boolean
}
export type Described = Readonly<
  Record<
    string,
    {
      readonly aliases: Readonly<Record<string, unknown>>
      readonly mappings: { readonly _meta?: Meta }
      readonly settings: { readonly index: { readonly blocks?: { readonly write?: string } } }
    }
  >
>

/**
 * Milliseconds that the cache is valid. Important changes are seen at once, by the index that an
 * answer comes from.
 */
const knownMs = 5000
const knownMax = 10_000
/** Tries of a call whose index answers each time that it was removed. */
const movesMax = 5

const hash = (text: string) => createHash('sha256').update(text).digest('hex').slice(0, 32)
export const aliasOf = (prefix: string, org: string, collection: string): string =>
  `${prefix}.${hash(org)}.${hash(collection)}`
export const generation = (alias: string, number: number): string =>
  `${alias}-${String(number).padStart(6, '0')}`
export const numberOf = (index: string): number => Number(index.slice(-6))
/**
 * Generations are filled through this alias. Writing to a removed index by its name would create it
 * anew.
 */
export const fillingOf = (index: string): string => `${index}-filling`

const kinds = {
  string: { type: 'keyword' },
  number: { type: 'double' },
  boolean: { type: 'boolean' },
} as const

/**
 * The platform's own analysis makes the terms, so that every adapter finds the same. OpenSearch
 * only splits them at spaces.
 * Vectors always use Lucene's engine: it needs no library outside the JVM, and filters while it
 * searches.
 */
export const bodyOf = (
  meta: Meta,
  { shards, replicas }: { readonly shards: number; readonly replicas: number },
  alias: string,
) => ({
  settings: {
    index: {
      number_of_shards: shards,
      number_of_replicas: replicas,
      knn: true,
      similarity: { default: { type: 'BM25', k1: 1.2, b: 0.75 } },
    },
  },
  mappings: {
    dynamic: 'strict',
    _meta: meta,
    _source: { excludes: ['terms'] },
    properties: {
      id: { type: 'keyword' },
      text: { type: 'keyword', index: false, doc_values: false },
      language: { type: 'keyword', index: false, doc_values: false },
      said: { type: 'keyword', index: false, doc_values: false },
      stamp: { type: 'keyword', index: false },
      terms: { type: 'text', analyzer: 'whitespace', index_options: 'freqs' },
      ...(meta.spec.dimensions === 0
        ? {}
        : {
            vector: {
              type: 'knn_vector',
              dimension: meta.spec.dimensions,
              method: { name: 'hnsw', engine: 'lucene', space_type: 'cosinesimil' },
            },
          }),
      fields: {
        properties: Object.fromEntries(
          Object.entries(meta.spec.fields).map(([name, kind]) => [name, kinds[kind]]),
        ),
      },
    },
  },
  aliases: { [alias]: {} },
})

export type Indices = ReturnType<typeof createIndices>
export function createIndices(connection: Connection, clock: Clock) {
  const { prefix, call } = connection
  const analysers = createAnalysers()
  const seen = createLru<string, { readonly known: Known; readonly at: number }>(knownMax)

  const describe = (name: string, query: Asked['query'] = {}) =>
    call<Described>('GET', `/${name}`, { query }, refusal => {
      if (refusal.type === 'index_not_found_exception') return {}
      throw toFault(refusal)
    })
  /** The collections that have these names. */
  const named = async (names: string): Promise<Meta[]> =>
    Object.values(await describe(names, { filter_path: '*.aliases,*.mappings._meta' })).flatMap(
      ({ mappings: { _meta: meta } = {}, aliases = {} }) =>
        meta && aliasOf(prefix, meta.org, meta.collection) in aliases ? [meta] : [],
    )
  const look = async (org: string, collection: string): Promise<Known | undefined> => {
    const alias = aliasOf(prefix, org, collection)
    const [found] = Object.entries(await describe(alias))
    seen.delete(alias)
    if (!found?.[1].mappings._meta) return undefined
    const [
      index,
      {
        mappings: { _meta: meta },
        settings,
      },
    ] = found
    const known: Known = {
      alias,
      index,
      meta: meta!,
      analyser: await analysers(meta!.spec.languages),
      isBlocked: settings.index.blocks?.write === 'true',
    }
    seen.set(alias, { known, at: clock.monotonic() })
    return known
  }
  const of = async (org: string, collection: string): Promise<Known> => {
    const one = seen.get(aliasOf(prefix, org, collection))
    if (one && clock.monotonic() - one.at < knownMs) return one.known
    const known = await look(org, collection)
    if (!known) throw notFound()
    return known
  }
  return {
    prefix,
    describe,
    look,
    of,
    analysers,
    forget: (org: string, collection: string) => seen.delete(aliasOf(prefix, org, collection)),
    metaOf: (org: string, collection: string, spec: Spec): Meta => ({
      org,
      collection,
      spec,
      analysis: analysisVersion,
    }),
    /**
     * Acts on the cached generation. If that generation was replaced, acts again on the new one.
     */
    async on<T>(
      org: string,
      collection: string,
      act: (known: Known) => Promise<T | 'moved'>,
    ): Promise<T> {
      for (let round = 1, last = ''; ; round++) {
        const known = await of(org, collection)
        if (round > movesMax && known.index === last)
          throw unavailable('a part of the collection is not there')
        last = known.index
        const done = await act(known).catch((error: unknown) =>
          hasCode(error, 'NOT_FOUND') ? ('moved' as const) : Promise.reject(error),
        )
        if (done !== 'moved') return done
        seen.delete(known.alias)
      }
    },
    collections: async (org: string): Promise<string[]> =>
      (await named(`${prefix}.${hash(org)}.*`)).flatMap(meta =>
        meta.org === org ? [meta.collection] : [],
      ),
    addresses: async (): Promise<string[]> =>
      (await named(`${prefix}.*`)).map(({ org, collection }) => `${org}/${collection}`),
  }
}
