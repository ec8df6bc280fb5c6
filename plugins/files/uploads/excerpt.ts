// The beginning of an upload's text, from wherever it is kept.
import type { ScopedBlobs } from '#ports/blobs.ts'
import type { Upload } from '../collections.ts'
import { cut } from './text.ts'

type Org = { readonly orgId: string }

/**
 * At most `max` UTF-16 code units; '' unless the upload is ready. `truncated`: its file has more.
 */
export async function excerptOf(
  blobs: ScopedBlobs,
  scope: Org,
  { status, text: short = '', textHash, textChars = 0, textCut = false }: Upload,
  max: number,
  signal?: AbortSignal,
): Promise<{ text: string; truncated: boolean }> {
  if (status !== 'ready') return { text: '', truncated: false }
  const whole =
    textHash === undefined || max === 0
      ? short
      : await beginningOf(blobs, scope, textHash, max, signal)
  const text = cut(whole, max)
  return { text, truncated: textCut || text.length < textChars }
}

async function beginningOf(
  blobs: ScopedBlobs,
  scope: Org,
  hash: string,
  max: number,
  signal: AbortSignal | undefined,
): Promise<string> {
  const decoder = new TextDecoder()
  const parts: string[] = []
  // A code unit takes at most three bytes of UTF-8. A character that the end cuts in half stays in
  // the decoder.
  for await (const part of blobs
    .tenant(scope)
    .get(hash, { end: max * 3, ...(signal ? { signal } : {}) }))
    parts.push(decoder.decode(part, { stream: true }))
  return parts.join('')
}

/**
 * Caches `excerptOf`: recent long texts, up to `charsMax` characters in all. Runs with the same
 * files share them.
 */
export function createExcerpts(blobs: ScopedBlobs, charsMax: number) {
  const kept = new Map<string, string>()
  let chars = 0
  const forget = (key: string) => {
    chars -= kept.get(key)?.length ?? 0
    kept.delete(key)
  }
  const keep = (key: string, text: string) => {
    forget(key)
    if (text.length > charsMax) return
    kept.set(key, text)
    chars += text.length
    for (const oldest of kept.keys()) {
      if (chars <= charsMax) return
      forget(oldest)
    }
  }
  return async (
    scope: Org,
    upload: Upload,
    max: number,
    signal?: AbortSignal,
  ): Promise<{ text: string; truncated: boolean }> => {
    const { textHash, textChars = 0, textCut = false } = upload
    const key = `${scope.orgId}/${textHash}`
    if (textHash === undefined || upload.status !== 'ready' || max === 0)
      return excerptOf(blobs, scope, upload, max, signal)
    const before = kept.get(key)
    const isEnough = before !== undefined && before.length >= Math.min(max, textChars)
    const text = isEnough ? before : (await excerptOf(blobs, scope, upload, max, signal)).text
    keep(key, text)
    const part = cut(text, max)
    return { text: part, truncated: textCut || part.length < textChars }
  }
}
