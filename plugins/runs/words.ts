// Finding words in texts, without an index: case and compatibility forms do not matter (Unicode NFKC, UAX #15).

/** Characters around the first word that an excerpt shows. */
const aroundChars = 80

const plain = (text: string) => text.normalize('NFKC').toLowerCase()

export const wordsOf = (query: string): string[] => [...new Set(plain(query).match(/[\p{L}\p{N}]+/gu) ?? [])]

/** What stands around the first of the words; undefined unless the text holds every one of them. */
export function excerptAround(text: string, words: readonly string[]): string | undefined {
  const folded = plain(text), places = words.map(word => folded.indexOf(word))
  if (places.some(place => place < 0)) return undefined
  const at = Math.min(...places), from = Math.max(0, at - aroundChars), to = Math.min(folded.length, at + aroundChars)
  // Folding may change the length of exotic letters by a little; an excerpt may be off by as much.
  return `${from > 0 ? '…' : ''}${text.slice(from, to).trim()}${to < text.length ? '…' : ''}`
}
