// A token names something that the kernel can hand out.

/**
 * Compared by `id`, never by identity: copies and reloads must agree. `type` is never set; it
 * carries the type.
 */
export type Token<T = unknown, Kind extends string = string> = {
  readonly id: string
  readonly kind: Kind
  readonly version: string
  readonly type?: T
  /**
   * Of a point: whoever asks an item waits for its answer, so that the item may live in another
   * thread.
   */
  readonly remote?: true
}

/** A port: bound by configuration, one adapter per process. */
export const port = <T>(name: string, version = '1.0.0'): Token<T, 'port'> => ({
  id: `port:${name}`,
  kind: 'port',
  version,
})

/** What JSON can say. */
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

/** What every bound port offers beside its own methods. */
export type Lifecycle = {
  /** Refuses with UNAVAILABLE when the thing behind the port cannot serve. */
  ping(): Promise<void>
  /** Ends everything; later calls fail with UNAVAILABLE. Closing twice is allowed. */
  close(): Promise<void>
}

/** What has been applied is not yet on disk. */
export type Durable = {
  /**
   * Everything applied so far is on disk when it resolves, at once when nothing is pending; rejects
   * with STORAGE_FULL or UNAVAILABLE when some of it was lost.
   */
  durable(): Promise<void>
  /**
   * Changes whenever applied writes were lost: whoever remembers what was applied (a cached head, a
   * folded run) compares it and reads again. Absent where applied means on disk.
   */
  epoch?(): number
}
