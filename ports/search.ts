// Search: passages of text that are found by their words, by their vectors, or by both.
import type { Fault } from '#contracts/faults.ts'
import type { Scalar, Where } from './storage.ts'
import { port, type Lifecycle } from './token.ts'

/**
 * Limits of one call. Texts count in UTF-16 units, bytes in UTF-8. INVALID_FIELD or
 * DOCUMENT_TOO_LARGE names the field that exceeds its limit.
 */
export const searchLimits = {
  collectionNameMax: 128,
  idBytesMax: 256,
  textBytesMax: 65_536,
  fieldBytesMax: 1024,
  fieldsMax: 32,
  dimensionsMax: 4096,
  languagesMax: 8,
  batchPassagesMax: 1000,
  batchBytesMax: 8_388_608,
  queryCharactersMax: 2000,
  queryTermsMax: 64,
  whereConditionsMax: 32,
  whereValuesMax: 1000,
  limitMax: 100,
  depthMax: 200,
} as const

/**
 * A language whose stop words and word forms are known, as ISO 639-1 code. `none` takes words as
 * they stand.
 */
export type Language =
  | 'none'
  | 'ar'
  | 'bg'
  | 'da'
  | 'de'
  | 'el'
  | 'en'
  | 'es'
  | 'fi'
  | 'fr'
  | 'ga'
  | 'hi'
  | 'hu'
  | 'hy'
  | 'id'
  | 'it'
  | 'lt'
  | 'ne'
  | 'nl'
  | 'no'
  | 'pt'
  | 'ro'
  | 'ru'
  | 'sr'
  | 'sv'
  | 'ta'
  | 'tr'
  | 'uk'

/** The declaration of a collection. */
export type CollectionSpec = {
  /**
   * The languages of the passages; default: English only. The language of a passage that names none
   * is detected from its text. Where the text does not tell, it is the first of these.
   */
  readonly languages?: readonly Language[]
  /** How many numbers a vector has; absent: no vectors. */
  readonly dimensions?: number
  /** The fields that a filter can use: name → type. */
  readonly fields?: Readonly<Record<string, 'string' | 'number' | 'boolean'>>
}

/**
 * `id` is chosen by the caller and unique in the collection. `language` is one of the collection's
 * languages. `fields` holds declared fields only, and any of them may be absent.
 */
export type Passage = {
  readonly id: string
  readonly text: string
  readonly language?: Language
  /**
   * As many finite numbers as declared, not all 0. The engine normalises the vector to length 1.
   */
  readonly vector?: readonly number[]
  readonly fields?: Readonly<Record<string, Scalar>>
}
/**
 * Why one passage was not indexed. `at`: its place in the list of the call. INVALID_FIELD and
 * DOCUMENT_TOO_LARGE are final. UNAVAILABLE and STORAGE_FULL are worth another try.
 */
export type ItemError = { readonly at: number; readonly id: string; readonly error: Fault }

/** A ranked query. Its text has no syntax. */
export type SearchQuery = {
  /**
   * `lexical`: BM25 over the words of `text` (k1 1.2, b 0.75). Replaced passages may count in its
   * statistics until an engine has tidied up. `vector`: cosine with `vector`. `hybrid`: both,
   * joined by reciprocal rank fusion (k 60; Cormack, Clarke and Büttcher, SIGIR 2009). The default
   * follows from what is given.
   */
  readonly mode?: 'lexical' | 'vector' | 'hybrid'
  /** At least one of these words must occur. Stop words alone find nothing. */
  readonly text?: string
  readonly vector?: readonly number[]
  /** A filter by declared fields and `id`, with the conditions of the storage. */
  readonly where?: Where
  /** 1 to 100; default 10. */
  readonly limit?: number
  /** How many of the best hits to skip; `offset` + `limit` is at most 200. */
  readonly offset?: number
  /** Vectors with a lower cosine (-1 to 1) are not hits. */
  readonly cosineMin?: number
  readonly signal?: AbortSignal
}
/**
 * `score`: BM25, cosine, or the sum of 1/(60 + rank). Compare scores within one answer only.
 * `highlights`: where the query's words stand in `text`, as [start, end) in UTF-16 units. They are
 * in order, at most 100.
 */
export type Hit = {
  readonly id: string
  readonly score: number
  readonly text: string
  readonly language: Language
  readonly fields: Readonly<Record<string, Scalar>>
  readonly highlights: readonly (readonly [start: number, end: number])[]
}
/** Hits, best first, ties sorted by id. `more`: a higher `offset` finds further hits. */
export type Hits = { readonly hits: readonly Hit[]; readonly more: boolean }

/**
 * Lists every passage that contains each word of `text`, highest ids first. The text has no syntax.
 */
export type MatchQuery = {
  readonly text: string
  readonly where?: Where
  /** Lists passages whose ids are smaller, compared by bytes: the last id of the page before. */
  readonly before?: string
  /** 1 to 100; default 10. */
  readonly limit?: number
  readonly signal?: AbortSignal
}

/**
 * The collections of one organisation. Each collection is an index of its own, so passages of
 * others neither hide nor rank anything. NOT_FOUND for a collection that was not defined.
 */
export type Passages = {
  /**
   * Creates a collection, or changes its specification without a gap. Queries are answered from the
   * old index until the new one is complete, and no write is lost. Vectors of other dimensions are
   * dropped.
   */
  define(collection: string, spec: CollectionSpec): Promise<void>
  /** Removes a collection; false when there was no such collection. */
  drop(collection: string): Promise<boolean>
  /** The names of the organisation's collections, sorted by their bytes. */
  collections(): Promise<string[]>
  /**
   * Adds passages, or replaces those with the same id; the last of the same id in one call counts.
   * When it resolves, the passages are on disk and every later query sees them. An error in one
   * passage does not affect the others.
   */
  index(
    collection: string,
    passages: readonly Passage[],
    options?: { readonly signal?: AbortSignal },
  ): Promise<{ readonly indexed: number; readonly errors: readonly ItemError[] }>
  /**
   * Removes passages by ids (at most 1000) or by a filter, and answers how many there were. No
   * later query sees them.
   */
  remove(
    collection: string,
    which: { readonly ids: readonly string[] } | { readonly where: Where },
  ): Promise<number>
  /** The best hits for a ranked query. */
  query(collection: string, query: SearchQuery): Promise<Hits>
  /**
   * Passages that contain every word, page by page. `score` is 0, and `highlights` has only the
   * first. Stop words of any of the languages are ignored. A text of stop words alone finds
   * nothing.
   */
  match(collection: string, query: MatchQuery): Promise<Hits>
  /** How many passages there are, or match the filter. */
  count(collection: string, where?: Where): Promise<number>
}
/**
 * One organisation's passages in a collection that all organisations share. A filter can name ids
 * by `id`, `in` or `prefix`.
 */
export type SharedPassages = Pick<Passages, 'define' | 'index' | 'remove' | 'match' | 'count'>
/**
 * `spec`: the specification with every default; defining it elsewhere makes an equal collection.
 * `passages`: as they were given. A `language` is present only where the caller gave one. A vector
 * has length 1 and single precision, and indexing it again does not change it.
 */
export type Contents = {
  readonly spec: Required<CollectionSpec>
  readonly passages: readonly Passage[]
}
export type SearchEngine = Lifecycle & {
  /**
   * One organisation's collections. The same name at another organisation is another collection.
   */
  within(orgId: string): Passages
  /**
   * Addresses `<organisation>/<collection>` of all collections, sorted by bytes: those behind
   * `after`, at most `limit`.
   */
  addresses(options: { readonly after?: string; readonly limit: number }): Promise<string[]>
  /**
   * Reads a collection in order to move it: passages sorted by the bytes of their ids, those behind
   * the id `after`, 1 to 1000 of them. NOT_FOUND for a collection that was not defined.
   */
  contents(
    orgId: string,
    collection: string,
    options: { readonly after?: string; readonly limit: number },
  ): Promise<Contents>
  /**
   * Writes a consistent copy into that file while the engine runs. Absent where the operator's own
   * tools make backups. Writes no file when nothing was ever stored.
   */
  backup?(path: string): Promise<void>
}

/**
 * The search that a plugin sees. Each collection belongs to one organisation and to this plugin.
 */
export type ScopedSearch = {
  /** The collections of one organisation. A caller can be passed as the scope. */
  tenant(scope: { readonly orgId: string }): Passages
  /**
   * For many small organisations: one index that all share, of which each organisation sees only
   * its own part. Results are not ranked, because a rank would reveal statistics of other
   * organisations.
   */
  shared(scope: { readonly orgId: string }): SharedPassages
}

/**
 * Where a plugin makes its documents findable. The documents themselves are stored elsewhere,
 * because an index can be lost and built again.
 *  @example test/conformance/search/common.ts#answerFrom
 */
export const Search = port<ScopedSearch>('search')
