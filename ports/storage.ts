// Document collections. One document is the unit of atomicity, and no adapter must offer more.
import { port, type Durable, type Json, type Lifecycle } from './token.ts'

/** A JSON object. The plugin chooses its other fields. */
export type Doc = { readonly id: string }
/** Values that conditions and indexes can compare. */
export type Scalar = string | number | boolean

/**
 * The declaration of a collection, made by the plugin that owns it. A field that an index names is
 * at the top level and holds one scalar type.
 */
export type Collection<D extends Doc = Doc> = {
  /** Unique among all plugins: begin it with the plugin's name. */
  readonly name: string
  /**
   * `tenant`: each document carries `orgId`, which the kernel writes and filters by. `platform`:
   * only `system(why)` reaches it.
   */
  readonly scope: 'tenant' | 'platform'
  /**
   * For a `tenant` collection: its ids are unique across organisations. The plugin ensures this
   * with ids of the clock, or with digests that include the organisation. Otherwise two
   * organisations may use the same id.
   */
  readonly global?: true
  /**
   * Unique keys: lists of fields whose values no two documents of an organisation share. A document
   * that lacks any of the fields is not checked.
   */
  readonly unique?: readonly (readonly string[])[]
  /** Unique keys across organisations, for look-ups before the organisation is known. */
  readonly globallyUnique?: readonly (readonly string[])[]
  /**
   * Lists of fields that queries use together: first the fields that are compared, then the field
   * that is sorted by.
   */
  readonly index?: readonly (readonly string[])[]
  /**
   * A field with milliseconds since the epoch. The document is removed some time after that moment.
   */
  readonly expires?: string
  /** The field that names the user who owns the data, for export and erasure. */
  readonly owner?: string
  /** Set by the kernel, never declared: the stored ids contain the organisation. */
  readonly ids?: 'organisation'
  /** Never set. It carries the document's type. */
  readonly type?: D
}
export const collection = <D extends Doc>(
  spec: Omit<Collection<D>, 'type' | 'ids'>,
): Collection<D> => spec

/**
 * A filter; all its conditions must hold. Equality compares scalars and never matches an absent
 * field. Values are never operators. Prefixes compare bytes.
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
 * A change of one document. `push` appends to an array, and creates the array when it is absent.
 * `pull` removes every equal scalar. `inc` counts an absent field as 0. `id` never changes.
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
  /** Absent: all documents. */
  readonly where?: Where
  /**
   * Default: by `id`, ascending. Ties are sorted by `id` in the same direction. Documents without
   * the field are left out.
   */
  readonly orderBy?: readonly [field: string, direction: 'asc' | 'desc']
  /** 1 to 1000; default 50. */
  readonly limit?: number
  /** The `next` of the page before, else CURSOR_INVALID. */
  readonly after?: string
}
/** `next`: pass it as `after` to get the next page. Absent on the last page. */
export type Page<D> = { readonly items: D[]; readonly next?: string }

/**
 * A promise resolves when its write is applied, in the order of the calls. Every later call sees
 * the write. `durable` says when it is on disk.
 */
export type Store = {
  /**
   * DUPLICATE when the id or a unique key exists (values: `fields`). DOCUMENT_TOO_LARGE over
   * `limits.documentBytesMax`.
   */
  insert<D extends Doc>(collection: Collection<D>, doc: D): Promise<void>
  /** Inserts in order and stops at the first failure: `{ inserted, error }`. */
  insertMany<D extends Doc>(
    collection: Collection<D>,
    docs: readonly D[],
  ): Promise<{ inserted: number; error?: Error }>
  /** The document; undefined when there is none. */
  get<D extends Doc>(collection: Collection<D>, id: string): Promise<D | undefined>
  /** One page of documents. CURSOR_INVALID for an `after` that no page gave. */
  find<D extends Doc>(collection: Collection<D>, query?: Query): Promise<Page<D>>
  /**
   * Changes one document and answers it. Undefined, and no change, when there is no such document
   * or `if` does not hold.
   */
  update<D extends Doc>(
    collection: Collection<D>,
    id: string,
    change: Change,
    options?: { readonly if?: Where },
  ): Promise<D | undefined>
  /** Changes all that match and answers how many. Each document changes atomically. */
  updateMany<D extends Doc>(
    collection: Collection<D>,
    where: Where,
    change: Change,
  ): Promise<number>
  /** Removes one document. False when there was none, or when `if` does not hold. */
  remove<D extends Doc>(
    collection: Collection<D>,
    id: string,
    options?: { readonly if?: Where },
  ): Promise<boolean>
  /** Removes all that match and answers how many. Each document is removed atomically. */
  removeMany<D extends Doc>(collection: Collection<D>, where: Where): Promise<number>
  /** How many documents match. */
  count<D extends Doc>(collection: Collection<D>, where?: Where): Promise<number>
}

/**
 * The storage that an adapter implements, not scoped to organisations. Plugins get `ScopedStorage`.
 */
export type StorageEngine = Store &
  Durable &
  Lifecycle & {
    readonly limits: { readonly documentBytesMax: number }
    /**
     * True when no other process can open the storage. Then work that a dead process left can be
     * taken over at once.
     */
    readonly exclusive: boolean
    /** Creates or extends the collection and its indexes. Repeating it changes nothing. */
    define(collection: Collection): Promise<void>
    /**
     * The last declaration of every stored collection, sorted by name. UNAVAILABLE when the storage
     * holds documents whose declaration is unknown.
     */
    collections(): Promise<readonly Collection[]>
    /**
     * Writes a consistent copy into a file or folder while the engine runs. Absent where the
     * operator's own tools make backups.
     */
    backup?(path: string): Promise<void>
  }

/**
 * Marks a storage that holds half a copy of another one, under the id `copy`. No server starts on
 * it. `from`: the other storage, in words. `source`: the fingerprint of its contents.
 */
export const CopyMark = collection<{
  readonly id: string
  readonly from: string
  readonly source: string
}>({ name: 'storage_copies', scope: 'platform' })

/**
 * The storage that a plugin sees. Each query has an organisation, or a declared reason to have
 * none.
 */
export type ScopedStorage = Required<Durable> & {
  /** True when no other process can open the storage. */
  readonly exclusive: boolean
  /** The documents of one organisation. A caller can be passed as the scope. */
  tenant(scope: { readonly orgId: string }): Store
  /**
   * Access across organisations, for look-ups before the caller is known and for sweeps. `why` is
   * one of the plugin's `system` reasons.
   */
  system(why: string): Store
}

/**
 * Stores a plugin's documents, in the collections that the plugin declares.
 *  @example test/examples/template/service.ts
 */
export const Storage = port<ScopedStorage>('storage')
