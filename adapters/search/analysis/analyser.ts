// Turns a text into the terms that an index holds. Every adapter uses it, so that all rank alike.
import type { Language } from '#ports/search.ts'
import { createLru } from '../../_shared/lru.ts'
import { languages } from './languages.ts'
import { folded, tokens } from './tokens.ts'

/** Grows when the same text gives other terms than before. Then older indexes are built anew. */
export const analysisVersion = 1
/** Words whose stems are cached for each language: texts repeat words. */
const wordsMax = 10_000
/** A language is detected from so many UTF-16 units at the beginning of a text. */
const detectedLength = 2000

export type Range = readonly [start: number, end: number]
export type Analyser = {
  /** Detects the language of a text, among those that the collection declares. */
  languageOf(text: string): Language
  /** The terms of a text, in its order, with repetitions. */
  terms(text: string, language: Language): string[]
  /**
   * The terms of a query, each once, in every language of the collection: a query is too short to
   * detect its language.
   */
  queryTerms(text: string, termsMax: number): string[]
  /**
   * For each word, its forms in all of the collection's languages. A stop word of any of them is
   * left out.
   */
  queryWords(text: string, wordsMax: number): string[][]
  /** The ranges of the terms in the text. Overlapping ranges are merged. */
  ranges(text: string, language: Language, wanted: ReadonlySet<string>, rangesMax: number): Range[]
}
type Rules = (word: string) => readonly string[]

/** "l'été" is about the summer, "John's" about John: the long parts around an apostrophe count. */
const partsOf = (word: string): readonly string[] => {
  if (!word.includes("'")) return [word]
  const parts = word.split("'")
  const long = parts.filter(part => part.length > 2)
  return long.length > 0 ? long : [parts.join('')]
}

async function rulesOf(language: Language): Promise<Rules> {
  if (language === 'none') return word => partsOf(word).map(folded)
  const known = languages[language]
  const [{ stemmer }, { stopwords }] = await Promise.all([known.stemmer(), known.stopWords()])
  const stops = new Set(
    [...stopwords, ...(known.alsoStopWords ?? [])].map(word =>
      word.normalize('NFKC').toLowerCase(),
    ),
  )
  const seen = createLru<string, readonly string[]>(wordsMax)
  const made = (word: string) =>
    stops.has(word)
      ? []
      : partsOf(word)
          .filter(part => !stops.has(part))
          .map(part => folded(stemmer(part)) || folded(part))
  return word => {
    const before = seen.get(word)
    if (before) return before
    const terms = made(word)
    seen.set(word, terms)
    return terms
  }
}

async function detectorOf(declared: readonly Language[]): Promise<(text: string) => Language> {
  const first = declared[0] ?? 'none'
  const candidates = declared.filter(language => language !== 'none')
  if (candidates.length < 2) return () => first
  const { franc } = await import('franc')
  const only = candidates.map(language => languages[language].code)
  return text => candidates[only.indexOf(franc(text.slice(0, detectedLength), { only }))] ?? first
}

/** Makes analysers. They share the data of a language, which is loaded once. */
export function createAnalysers(): (declared: readonly Language[]) => Promise<Analyser> {
  const loaded = new Map<Language, Promise<Rules>>()
  const rulesFor = (language: Language) => {
    const rules = loaded.get(language) ?? rulesOf(language)
    loaded.set(language, rules)
    return rules
  }
  return async declared =>
    analyserOf(
      declared,
      new Map(
        await Promise.all(
          declared.map(async language => [language, await rulesFor(language)] as const),
        ),
      ),
      await detectorOf(declared),
    )
}

function analyserOf(
  declared: readonly Language[],
  rules: ReadonlyMap<Language, Rules>,
  languageOf: Analyser['languageOf'],
): Analyser {
  const termsOf = (word: string, pair: boolean, language: Language) =>
    pair ? [word] : rules.get(language)!(word)
  const anyTerms = (word: string, pair: boolean) =>
    [...new Set(declared.flatMap(language => termsOf(word, pair, language)))].filter(Boolean)
  return {
    languageOf,
    terms: (text, language) =>
      Array.from(tokens(text))
        .flatMap(({ word, pair }) => termsOf(word, pair, language))
        .filter(Boolean),
    queryTerms(text, termsMax) {
      const found = new Set<string>()
      for (const { word, pair } of tokens(text)) {
        for (const term of anyTerms(word, pair)) found.add(term)
        if (found.size >= termsMax) break
      }
      return [...found].slice(0, termsMax)
    },
    queryWords(text, limit) {
      const found = new Map<string, string[]>()
      for (const { word, pair } of tokens(text)) {
        const terms = anyTerms(word, pair)
        const isStopWord = declared.some(language => termsOf(word, pair, language).length === 0)
        if (terms.length > 0 && !isStopWord) found.set(terms.join(' '), terms)
        if (found.size >= limit) break
      }
      return [...found.values()]
    },
    ranges(text, language, wanted, rangesMax) {
      const found: [number, number][] = []
      for (const { start, end, word, pair } of tokens(text)) {
        if (!termsOf(word, pair, language).some(term => wanted.has(term))) continue
        const last = found.at(-1)
        if (last && start < last[1]) last[1] = end
        else if (found.push([start, end]) > rangesMax) return found.slice(0, rangesMax)
      }
      return found
    },
  }
}
