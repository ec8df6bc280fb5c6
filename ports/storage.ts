// Document collections. One document is the unit of atomicity: no adapter is asked for more.
import { port, type Durable, type Json, type Lifecycle } from './token.ts'

/** A JSON object; its other fields are the plugin's. */
export type Doc = { readonly id: string }
/** What can be compared, in conditions and indexes. */
export type Scalar = string | number | boolean

/**
 * What a collection is, declared by the plugin that owns it. Fields named in an index hold one
 * scalar type each, at the top level.
 */
export type Collection<D extends Doc = Doc> = {
  /** Unique in the whole house: begin it with the plugin's name. */
  readonly name: string
  /**
   * `tenant`: each document carries `orgId`, stamped and filtered by the kernel. `platform`:
   * reached only by `system(why)`.
   */
  readonly scope: 'tenant' | 'platform'
  /**
   * Of a tenant's: its ids are unique across organisations, because whoever makes them sees to that
   * (ids of the clock, digests with the organisation in them). Otherwise an id is an organisation's
   * own matter.
   */
  readonly global?: true
  /**
   * Lists of fields of which no two documents of an organisation may have the same values. A
   * document in which any of the fields is absent is ignored by the unique index.
   */
  readonly unique?: readonly (readonly string[])[]
  /** The same across organisations: for what is looked up before the organisation is known. */
  readonly globallyUnique?: readonly (readonly string[])[]
  /**
   * Lists of fields that are asked for together: equal ones first, then the one that is sorted by.
   */
  readonly index?: readonly (readonly string[])[]
  /** A field with milliseconds since the epoch; the document vanishes some time after it. */
  readonly expires?: string
  /** The field that names the user whose data this is, for export and erasure. */
  readonly owner?: string
  /** Never declared: set where the storage holds ids with the organisation in them. */
  readonly ids?: 'organisation'
  /** Never set; it carries the type. */
  readonly type?: D
}
export const collection = <D extends Doc>(
  spec: Omit<Collection<D>, 'type' | 'ids'>,
): Collection<D> => spec

/**
 * All conditions hold. Equality is scalar and never matches an absent field; values are never
 * operators. Prefixes compare bytes.
 */
export type Where = {
  readonly [field: string]:
    | Scalar
    | { readonly in: readonly Scalar[] }
    | { readonly prefix: string }
    | { readonly exists: boolean }
    | { readonly gt?: Scalar; readonly gte?: Scalar; readonly lt?: Scalar; readonly lte?: Scalar }
}

/**
 * `push` makes the array when it is absent and adds at its end; `pull` takes every equal scalar
 * out; `inc` counts an absent field as 0. `id` never changes.
 */
export type Change = {
  readonly set?: { readonly [field: string]: unknown }
  readonly unset?: readonly string[]
  readonly inc?: Readonly<Record<string, number>>
  readonly push?: Readonly<Record<string, Json>>
  readonly pull?: Readonly<Record<string, Scalar>>
}

/** Which documents, in which order, and how many. */
export type Query = {
  /** Absent: all. */
  readonly where?: Where
  /**
   * Ties are broken by `id`, in the same direction. Default: by `id`, ascending. Documents without
   * the field are left out.
   */
  readonly orderBy?: readonly [field: string, direction: 'asc' | 'desc']
  /** 1 to 1000; default 50. */
  readonly limit?: number
  /** `next` of the page before. CURSOR_INVALID when it is not. */
  readonly after?: string
}
/** `next`: for the page after it; absent on the last one. */
export type Page<D> = { readonly items: D[]; readonly next?: string }

/**
 * Promises resolve when the write is applied (visible to every later call), in the order of
 * submission; `durable` says when it is on disk.
 */
export type Store = {
  /**
   * DUPLICATE when the id or a unique key is taken (values: `fields`), DOCUMENT_TOO_LARGE over
   * `limits.documentBytesMax`.
   */
  insert<D extends Doc>(collection: Collection<D>, doc: D): Promise<void>
  /** In order; stops at the first that fails: `{ inserted, error }`. */
  insertMany<D extends Doc>(
    collection: Collection<D>,
    docs: readonly D[],
  ): Promise<{ inserted: number; error?: Error }>
  /** Undefined when there is none. */
  get<D extends Doc>(collection: Collection<D>, id: string): Promise<D | undefined>
  /** One page; CURSOR_INVALID for an `after` that is none. */
  find<D extends Doc>(collection: Collection<D>, query?: Query): Promise<Page<D>>
  /**
   * The document after the change; undefined when there is none or `if` does not hold (then nothing
   * changed).
   */
  update<D extends Doc>(
    collection: Collection<D>,
    id: string,
    change: Change,
    options?: { readonly if?: Where },
  ): Promise<D | undefined>
  /** How many were changed; each one atomically. */
  updateMany<D extends Doc>(
    collection: Collection<D>,
    where: Where,
    change: Change,
  ): Promise<number>
  /** False when there was none, or `if` does not hold. */
  remove<D extends Doc>(
    collection: Collection<D>,
    id: string,
    options?: { readonly if?: Where },
  ): Promise<boolean>
  /** How many were removed; each one atomically. */
  removeMany<D extends Doc>(collection: Collection<D>, where: Where): Promise<number>
  /** How many there are. */
  count<D extends Doc>(collection: Collection<D>, where?: Where): Promise<number>
}

/** The adapter's own face: not scoped. Plugins receive `ScopedStorage`. */
export type StorageEngine = Store &
  Durable &
  Lifecycle & {
    readonly limits: { readonly documentBytesMax: number }
    /**
     * True when no other process can have it open, so that what a dead process left may be taken
     * over at once.
     */
    readonly exclusive: boolean
    /** Creates or extends the collection and its indexes; the same again does nothing. */
    define(collection: Collection): Promise<void>
    /**
     * What is kept here, by whomever it was defined, as it was last defined, sorted by name.
     * UNAVAILABLE where the storage holds documents of which it does not know what they are.
     */
    collections(): Promise<readonly Collection[]>
    /**
     * A consistent copy into a file or folder while it runs; absent where the operator's own tools
     * do it.
     */
    backup?(path: string): Promise<void>
  }

/**
 * Stands in a storage, under the id `copy`, as long as what it holds is half a copy of another: no
 * server starts on it. `from`: which other, in words; `source`: the same as a fingerprint of what
 * it holds.
 */
export const CopyMark = collection<{
  readonly id: string
  readonly from: string
  readonly source: string
}>({ name: 'storage_copies', scope: 'platform' })

/**
 * What a plugin sees: no query without an organisation, or without a declared reason to go without.
 */
export type ScopedStorage = Required<Durable> & {
  /** True when no other process can have it open. */
  readonly exclusive: boolean
  /** The documents of one organisation; a caller fits as it is. */
  tenant(scope: { readonly orgId: string }): Store
  /**
   * Across organisations, for look-ups before the caller is known and for sweeps. `why` stands in
   * the plugin's `system` list.
   */
  system(why: string): Store
}

/** Where a plugin keeps its documents, in the collections that it declares.
 *  @example test/examples/template/service.ts */
export const Storage = port<ScopedStorage>('storage')
