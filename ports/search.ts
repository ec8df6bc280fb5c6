// Passages of text that are found again by their words, by their vectors, or by both.
import type { Fault } from '#contracts/faults.ts'
import type { Scalar, Where } from './storage.ts'
import { port, type Lifecycle } from './token.ts'

/**
 * What one call may carry. Texts are UTF-16 strings, bytes are those of UTF-8; more is refused with
 * INVALID_FIELD or DOCUMENT_TOO_LARGE, which name the field.
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
 * An ISO 639-1 code of a language whose stop words and word forms are known, or `none`: words as
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

/** What a collection is, declared by whoever keeps it. */
export type CollectionSpec = {
  /**
   * Those that its passages are written in; one that does not say its own is told by its text, the
   * first standing where the text tells nothing. Default: English alone.
   */
  readonly languages?: readonly Language[]
  /** Numbers in a vector; absent: no vectors. */
  readonly dimensions?: number
  /** What can be filtered by: a plain name and its one type. */
  readonly fields?: Readonly<Record<string, 'string' | 'number' | 'boolean'>>
}

/**
 * `id` is the caller's own, unique in its collection; `language` one of the collection's. Only
 * declared fields are taken; an absent one is left out.
 */
export type Passage = {
  readonly id: string
  readonly text: string
  readonly language?: Language
  /** As many finite numbers as declared, not all 0; their length does not matter. */
  readonly vector?: readonly number[]
  readonly fields?: Readonly<Record<string, Scalar>>
}
/**
 * `at`: the passage's place in what was handed in. INVALID_FIELD and DOCUMENT_TOO_LARGE are for
 * good, UNAVAILABLE and STORAGE_FULL are worth another try.
 */
export type ItemError = { readonly at: number; readonly id: string; readonly error: Fault }

/** What is looked for. Text is never syntax. */
export type SearchQuery = {
  /**
   * `lexical`: BM25 over the words of `text` (k1 1.2, b 0.75; what was replaced may weigh in its
   * statistics until an engine has tidied up); `vector`: cosine with `vector`; `hybrid`: both,
   * joined by reciprocal rank fusion (k 60; Cormack, Clarke and Büttcher, SIGIR 2009). Default: by
   * what is given.
   */
  readonly mode?: 'lexical' | 'vector' | 'hybrid'
  /** Words of which at least one must occur; of only stop words nothing is found. */
  readonly text?: string
  readonly vector?: readonly number[]
  /** Only passages for which it holds; as in the storage, by declared fields and `id`. */
  readonly where?: Where
  /** 1 to 100; default 10. */
  readonly limit?: number
  /** How many of the best to pass over; `offset` + `limit` at most 200. */
  readonly offset?: number
  /** Vectors with a lower cosine (-1 to 1) do not count as found. */
  readonly cosineMin?: number
  readonly signal?: AbortSignal
}
/**
 * `score`: BM25, cosine or the sum of 1/(60 + rank); comparable within one answer. `highlights`:
 * where the query's words stand in `text`, as [start, end) in UTF-16 units, in order, at most 100.
 */
export type Hit = {
  readonly id: string
  readonly score: number
  readonly text: string
  readonly language: Language
  readonly fields: Readonly<Record<string, Scalar>>
  readonly highlights: readonly (readonly [start: number, end: number])[]
}
/** Best first; ties by id. `more`: there are further ones within reach of `offset`. */
export type Hits = { readonly hits: readonly Hit[]; readonly more: boolean }

/**
 * What is listed: every passage that holds each word of `text`, the last ids first. Text is never
 * syntax.
 */
export type MatchQuery = {
  readonly text: string
  readonly where?: Where
  /**
   * Only passages whose ids are before this one, by their bytes: the last one of the page before.
   */
  readonly before?: string
  /** 1 to 100; default 10. */
  readonly limit?: number
  readonly signal?: AbortSignal
}

/**
 * The collections of one organisation. Each is an index of its own: what others hold neither hides
 * nor weighs anything. NOT_FOUND where one was not defined.
 */
export type Passages = {
  /**
   * Makes a collection, or brings it to another specification without a gap: queries are answered
   * from the old until the new is whole, writes are kept. Vectors of other dimensions are
   * forgotten.
   */
  define(collection: string, spec: CollectionSpec): Promise<void>
  /** False when there was none. */
  drop(collection: string): Promise<boolean>
  /** The names of those there are, sorted by their bytes. */
  collections(): Promise<string[]>
  /**
   * Adds passages or replaces those with the same id (the last of the same in one call). Every
   * later query sees them when it resolves, and they are on disk. What is wrong with one passage
   * harms no other.
   */
  index(
    collection: string,
    passages: readonly Passage[],
    options?: { readonly signal?: AbortSignal },
  ): Promise<{ readonly indexed: number; readonly errors: readonly ItemError[] }>
  /** By ids (at most 1000) or by a filter; how many there were. No later query sees them. */
  remove(
    collection: string,
    which: { readonly ids: readonly string[] } | { readonly where: Where },
  ): Promise<number>
  /** The best passages. */
  query(collection: string, query: SearchQuery): Promise<Hits>
  /**
   * Passages that hold every word, page by page to the last: `score` is 0, and of `highlights`
   * there is the first. A stop word of any of the languages asks for nothing; of no other word,
   * nothing is found.
   */
  match(collection: string, query: MatchQuery): Promise<Hits>
  /** How many there are. */
  count(collection: string, where?: Where): Promise<number>
}
/**
 * One organisation's passages in a collection that all share. A filter names ids, if any, by `id`,
 * `in` or `prefix`.
 */
export type SharedPassages = Pick<Passages, 'define' | 'index' | 'remove' | 'match' | 'count'>
/**
 * `spec`: with every default; defined elsewhere by it, a collection is the same. `passages`: each
 * as it was given, its `language` only where its owner named it; a vector has length 1 and is in
 * single precision, and indexed again it stays as it is.
 */
export type Contents = {
  readonly spec: Required<CollectionSpec>
  readonly passages: readonly Passage[]
}
export type SearchEngine = Lifecycle & {
  /** One organisation's collections: another's name means another collection here. */
  within(orgId: string): Passages
  /**
   * Every collection as `<organisation>/<collection>`, in the order of these texts' bytes: those
   * behind `after`, at most `limit`.
   */
  addresses(options: { readonly after?: string; readonly limit: number }): Promise<string[]>
  /**
   * What a collection holds, for whoever moves it: passages in the order of their ids' bytes, those
   * behind the id `after`, 1 to 1000 of them. NOT_FOUND where it was not defined.
   */
  contents(
    orgId: string,
    collection: string,
    options: { readonly after?: string; readonly limit: number },
  ): Promise<Contents>
  /**
   * A consistent copy as that file, while it runs; absent where the operator's own tools do it.
   * Nothing is written where nothing was ever kept.
   */
  backup?(path: string): Promise<void>
}

/** What a plugin sees: every collection lies within an organisation, and is the plugin's own. */
export type ScopedSearch = {
  /** Those of one organisation; a caller fits as it is. */
  tenant(scope: { readonly orgId: string }): Passages
  /**
   * For what each of many small organisations has a little of: one index for all of them, of which
   * each meets its own part. Nothing in it is ranked, for a rank would tell of others.
   */
  shared(scope: { readonly orgId: string }): SharedPassages
}

/**
 * Where a plugin lets people and agents find what its documents say; what is found is kept
 * elsewhere, as this can be made anew.
 *  @example test/conformance/search/common.ts#answerFrom
 */
export const Search = port<ScopedSearch>('search')
