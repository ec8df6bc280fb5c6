// Measures texts in bytes of JSON, and cuts them. Limits of stores are in bytes; texts are counted
// in characters.

/**
 * The most bytes that one character takes as JSON. A control character takes six (`\u0001`), and so
 * does half of a surrogate pair.
 */
const bytesPerCharMax = 6

/**
 * An upper bound for the bytes of the character at `at` as JSON. A surrogate pair that begins there
 * counts as one character.
 */
function costOf(text: string, at: number): { readonly chars: 1 | 2; readonly bytes: number } {
  const code = text.charCodeAt(at)
  if (code < 0x20 || code === 0x22 || code === 0x5c) return { chars: 1, bytes: bytesPerCharMax }
  if (code < 0x80) return { chars: 1, bytes: 1 }
  if (code < 0x800) return { chars: 1, bytes: 2 }
  if (code < 0xd800 || code > 0xdfff) return { chars: 1, bytes: 3 }
  const next = code < 0xdc00 ? text.charCodeAt(at + 1) : 0
  return next >= 0xdc00 && next <= 0xdfff
    ? { chars: 2, bytes: 4 }
    : { chars: 1, bytes: bytesPerCharMax }
}

/**
 * Returns where a piece ends that begins at `from` and takes at most `bytesMax` bytes as JSON. No
 * surrogate pair is cut.
 */
function endOf(text: string, from: number, bytesMax: number): number {
  if ((text.length - from) * bytesPerCharMax <= bytesMax) return text.length
  let at = from
  let bytes = 0
  while (at < text.length) {
    const cost = costOf(text, at)
    bytes += cost.bytes
    if (bytes > bytesMax) break
    at += cost.chars
  }
  return at
}

/**
 * Returns the beginning of the text that takes at most `bytesMax` bytes as JSON, quotes not
 * counted.
 */
export const clip = (text: string, bytesMax: number): string =>
  text.slice(0, endOf(text, 0, bytesMax))

/**
 * Cuts the text into pieces of at most `bytesMax` bytes each. There is at least one piece, and each
 * has at least one character.
 */
export function piecesOf(text: string, bytesMax: number): string[] {
  const pieces: string[] = []
  let from = 0
  do {
    const end = Math.max(endOf(text, from, bytesMax), Math.min(text.length, from + 1))
    pieces.push(text.slice(from, end))
    from = end
  } while (from < text.length)
  return pieces
}

/** The exact bytes of the value as JSON. */
export const jsonBytes = (value: unknown): number =>
  Buffer.byteLength(JSON.stringify(value) ?? 'null')
/**
 * Whether the text takes at most `bytesMax` bytes as JSON. A short text is not serialised to find
 * out.
 */
export const fits = (text: string, bytesMax: number): boolean =>
  text.length * bytesPerCharMax + 2 <= bytesMax || jsonBytes(text) <= bytesMax

/**
 * Counts the levels of nested arrays and objects. It does not recurse: it guards code that recurses
 * over the value.
 */
export function depthOf(value: unknown): number {
  let level = [value]
  let depth = 0
  for (;;) {
    const next: unknown[] = []
    let holds = false
    for (const one of level) {
      if (typeof one !== 'object' || one === null) continue
      holds = true
      for (const inner of Object.values(one))
        if (typeof inner === 'object' && inner !== null) next.push(inner)
    }
    if (!holds) return depth
    depth++
    level = next
  }
}
