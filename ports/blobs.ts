// Bytes by content: the address of a blob is the SHA-256 of what it holds, in hex.
import { port, type Lifecycle } from './token.ts'

/** `bytes`: its length. */
export type Blob = { readonly hash: string; readonly bytes: number }
/** The blobs of one organisation. */
export type Blobs = {
  /**
   * Streams in; on disk when it resolves; the same content twice is stored once. BODY_TOO_LARGE
   * past `bytesMax` leaves nothing behind; so does an abort.
   */
  put(
    content: AsyncIterable<Uint8Array>,
    options?: { readonly bytesMax?: number; readonly signal?: AbortSignal },
  ): Promise<Blob>
  /**
   * NOT_FOUND when absent. `start` and `end` are byte offsets, `end` exclusive; beyond the end
   * reads nothing.
   */
  get(
    hash: string,
    options?: { readonly start?: number; readonly end?: number; readonly signal?: AbortSignal },
  ): AsyncIterable<Uint8Array>
  /** Undefined when absent. */
  stat(hash: string): Promise<Blob | undefined>
  /** False when there was none. */
  remove(hash: string): Promise<boolean>
}
export type BlobsEngine = Lifecycle & {
  /** One organisation's blobs: another's hash is unknown here. */
  within(orgId: string): Blobs
  /**
   * Every blob as `<organisation>/<hash>`, in the order of these texts' bytes: those behind
   * `after`, at most `limit`.
   */
  addresses(options: { readonly after?: string; readonly limit: number }): Promise<string[]>
}

/**
 * What a plugin sees: every blob lies within an organisation, so that a hash tells nothing about
 * another's files.
 */
export type ScopedBlobs = {
  /** Those of one organisation; a caller fits as it is. */
  tenant(scope: { readonly orgId: string }): Blobs
}

/** Files and whatever else is too long for a document.
 *  @example plugins/files/excerpt.ts */
export const BlobStore = port<ScopedBlobs>('blobs')
