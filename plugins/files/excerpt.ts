// The beginning of an upload's text, from wherever it is kept.
import type { ScopedBlobs } from '#ports/blobs.ts'
import type { Upload } from './collections.ts'
import { cut } from './text.ts'

type Org = { readonly orgId: string }

/** At most `max` UTF-16 code units; '' unless the upload is ready. `truncated`: its file has more. */
export async function excerptOf(blobs: ScopedBlobs, scope: Org, { status, text: short = '', textHash, textChars = 0, textCut = false }: Upload, max: number, signal?: AbortSignal): Promise<{ text: string; truncated: boolean }> {
  if (status !== 'ready') return { text: '', truncated: false }
  const whole = textHash === undefined ? short : await beginningOf(blobs, scope, textHash, max, signal)
  const text = cut(whole, max)
  return { text, truncated: textCut || text.length < textChars }
}

async function beginningOf(blobs: ScopedBlobs, scope: Org, hash: string, max: number, signal: AbortSignal | undefined): Promise<string> {
  const decoder = new TextDecoder(), parts: string[] = []
  // A code unit takes at most three bytes of UTF-8. A character that the end cuts in half stays in the decoder.
  for await (const part of blobs.tenant(scope).get(hash, { end: max * 3, ...(signal ? { signal } : {}) })) parts.push(decoder.decode(part, { stream: true }))
  return parts.join('')
}
