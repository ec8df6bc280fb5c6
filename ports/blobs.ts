// Files by content: the address of a blob is the SHA-256 of its bytes, in hex.
import { port, type Lifecycle } from './token.ts'

/** `hash`: SHA-256 in hex. `bytes`: the length. */
export type Blob = { readonly hash: string; readonly bytes: number }
/** The blobs of one organisation. */
export type Blobs = {
  /**
   * Stores the stream and resolves when it is on disk. The same content is stored once.
   * BODY_TOO_LARGE past `bytesMax`. A failed or aborted upload leaves nothing behind.
   */
  put(
    content: AsyncIterable<Uint8Array>,
    options?: { readonly bytesMax?: number; readonly signal?: AbortSignal },
  ): Promise<Blob>
  /**
   * The bytes from offset `start` to offset `end`, `end` exclusive. A range beyond the end is
   * empty. NOT_FOUND when there is no such blob.
   */
  get(
    hash: string,
    options?: { readonly start?: number; readonly end?: number; readonly signal?: AbortSignal },
  ): AsyncIterable<Uint8Array>
  /** The blob's hash and length; undefined when there is no such blob. */
  stat(hash: string): Promise<Blob | undefined>
  /** Removes the blob; false when there was no such blob. */
  remove(hash: string): Promise<boolean>
}
export type BlobsEngine = Lifecycle & {
  /** One organisation's blobs. It does not see blobs of others, whatever hash it asks for. */
  within(orgId: string): Blobs
  /**
   * Addresses `<organisation>/<hash>` of all blobs, sorted by bytes: those behind `after`, at most
   * `limit`.
   */
  addresses(options: { readonly after?: string; readonly limit: number }): Promise<string[]>
}

/**
 * The blob store that a plugin sees. Each blob belongs to one organisation, so a hash reveals
 * nothing about another organisation's files.
 */
export type ScopedBlobs = {
  /** The blobs of one organisation. A caller can be passed as the scope. */
  tenant(scope: { readonly orgId: string }): Blobs
}

/**
 * Stores files, and anything else that is too long for a document.
 *  @example plugins/files/uploads/excerpt.ts
 */
export const BlobStore = port<ScopedBlobs>('blobs')
