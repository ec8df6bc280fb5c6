// Downloads of files.
import { fault, type Bytes } from '#kernel'
import type { ScopedBlobs } from '#ports/blobs.ts'

type Org = { readonly orgId: string }

/**
 * UNAVAILABLE when the blob store has lost the content. This is known before the head of the answer
 * is sent.
 */
export async function download(
  blobs: ScopedBlobs,
  scope: Org,
  { hash, mime, filename }: { hash: string; mime: string; filename: string },
  signal: AbortSignal,
): Promise<Bytes> {
  const own = blobs.tenant(scope)
  if (!(await own.stat(hash)))
    throw fault('UNAVAILABLE', { what: 'the content', why: 'the blob store does not have it' })
  return { stream: own.get(hash, { signal }), mime, filename }
}
