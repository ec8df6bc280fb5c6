// Finds the sentences of the material that match a question best: Okapi BM25, with each sentence as
// a document.
import { stemsOf, sentencesOf } from './words.ts'

export type Source = { readonly name: string; readonly text: string }
export type Quote = { readonly source: string; readonly text: string }
/**
 * `turn` lets others run; it is called after every block, so that a large document never holds the
 * event loop for long.
 */
type Turn = () => Promise<void>
type Found = Quote & {
  readonly order: number
  readonly counts: readonly number[]
  readonly length: number
}

/** Characters of all material that are read. */
export const materialMax = 2_097_152
const blockChars = 16_384
const termsMax = 64
const topicsMax = 12
const termSaturation = 1.2
const lengthWeight = 0.75

/** The material in blocks that end where a sentence or a line does. */
function* blocksOf(sources: readonly Source[]): Generator<Source> {
  let left = materialMax
  for (const { name, text } of sources) {
    const end = Math.min(text.length, left)
    left -= end
    for (let at = 0; at < end; ) {
      let stop = Math.min(end, at + blockChars)
      if (stop < end) {
        const cut = Math.max(text.lastIndexOf('\n', stop), text.lastIndexOf('. ', stop) + 1)
        if (cut > at + blockChars / 2) stop = cut
      }
      yield { name, text: text.slice(at, stop) }
      at = stop
    }
    if (left === 0) return
  }
}

/** The stems that occur most in the material. A summary covers these. */
async function topicsOf(sources: readonly Source[], turn: Turn): Promise<string[]> {
  const counts = new Map<string, number>()
  for (const { text } of blocksOf(sources)) {
    for (const stem of stemsOf(text)) counts.set(stem, (counts.get(stem) ?? 0) + 1)
    await turn()
  }
  return [...counts]
    .toSorted(([a, most], [b, more]) => more - most || (a < b ? -1 : 1))
    .slice(0, topicsMax)
    .map(([stem]) => stem)
}

async function search(terms: readonly string[], sources: readonly Source[], turn: Turn) {
  const place = new Map(terms.map((term, at) => [term, at]))
  const holding = terms.map(() => 0)
  const found: Found[] = []
  let [sentences, words] = [0, 0]
  for (const { name, text } of blocksOf(sources)) {
    for (const sentence of sentencesOf(text)) {
      const stems = stemsOf(sentence)
      const counts = terms.map(() => 0)
      let hit = false
      for (const stem of stems) {
        const at = place.get(stem)
        if (at === undefined) continue
        if (counts[at]!++ === 0) holding[at]!++
        hit = true
      }
      if (hit)
        found.push({ source: name, text: sentence, order: sentences, counts, length: stems.length })
      sentences++
      words += stems.length
    }
    await turn()
  }
  return { found, holding, sentences, meanLength: words / Math.max(1, sentences) }
}

/**
 * The `most` best sentences, in the order in which they stand in the material. `about: undefined`
 * asks for a summary.
 */
export async function quotesAbout(
  about: string | undefined,
  { sources, most, turn }: { sources: readonly Source[]; most: number; turn: Turn },
): Promise<Quote[]> {
  const terms =
    about === undefined
      ? await topicsOf(sources, turn)
      : [...new Set(stemsOf(about))].slice(0, termsMax)
  const { found, holding, sentences, meanLength } = await search(terms, sources, turn)
  const rarity = holding.map(count => Math.log(1 + (sentences - count + 0.5) / (count + 0.5)))
  const scoreOf = ({ counts, length }: Found): number => {
    const norm = termSaturation * (1 - lengthWeight + (lengthWeight * length) / (meanLength || 1))
    return counts.reduce(
      (sum, count, at) =>
        sum + (count === 0 ? 0 : (rarity[at]! * count * (termSaturation + 1)) / (count + norm)),
      0,
    )
  }
  const best: { one: Found; score: number }[] = []
  const texts = new Set<string>()
  for (const [at, one] of found.entries()) {
    if (at % 5000 === 4999) await turn()
    const score = scoreOf(one)
    if (best.length === most && score <= best.at(-1)!.score) continue
    if (texts.has(one.text)) continue
    texts.add(one.text)
    best.push({ one, score })
    best.sort((a, b) => b.score - a.score || a.one.order - b.one.order)
    if (best.length > most) texts.delete(best.pop()!.one.text)
  }
  // A sentence with only a fraction of the best score shares just one word with the question.
  const least = (best[0]?.score ?? 0) / (about === undefined ? Infinity : 3)
  return best
    .filter(({ score }) => score >= least)
    .map(({ one }) => one)
    .toSorted((a, b) => a.order - b.order)
    .map(({ source, text }) => ({ source, text }))
}
