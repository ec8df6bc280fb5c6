// A token names something that the kernel can give to a plugin.

/**
 * Compare tokens by `id`, never by identity, because copies and reloads must agree. `type` is never
 * set; it carries the type.
 */
export type Token<T = unknown, Kind extends string = string> = {
  readonly id: string
  readonly kind: Kind
  readonly version: string
  readonly type?: T
  /**
   * Of a point: each method of an item may answer with a promise, so that the item may live in
   * another thread.
   */
  readonly remote?: true
}

/** Declares a port. Configuration binds one adapter to it in each process. */
export const port = <T>(name: string, version = '1.0.0'): Token<T, 'port'> => ({
  id: `port:${name}`,
  kind: 'port',
  version,
})

/** Any JSON value. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

/** The methods that every bound port has beside its own. */
export type Lifecycle = {
  /** Rejects with UNAVAILABLE when the engine cannot serve. */
  ping(): Promise<void>
  /** Closes the engine; later calls fail with UNAVAILABLE. Closing twice is allowed. */
  close(): Promise<void>
}

/** An engine whose applied writes may not be on disk yet. */
export type Durable = {
  /**
   * Resolves when every write applied so far is on disk, at once when nothing is pending. Rejects
   * with STORAGE_FULL or UNAVAILABLE when writes were lost.
   */
  durable(): Promise<void>
  /**
   * A number that changes when applied writes were lost. Code that caches applied state compares
   * the number, and reads again when it changed. Absent where applied writes are on disk.
   */
  epoch?(): number
}
