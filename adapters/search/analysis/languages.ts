// The rules of each language. A library is loaded when a collection declares its language.
import type { Language } from '#ports/search.ts'

type Known = {
  /** The detector's name of the language, by ISO 639-3. */
  readonly code: string
  readonly stemmer: () => Promise<{ stemmer(word: string): string }>
  readonly stopWords: () => Promise<{ readonly stopwords: readonly string[] }>
  /** Stop words that the library's list lacks. */
  readonly alsoStopWords?: readonly string[]
}

export const languages: Readonly<Record<Exclude<Language, 'none'>, Known>> = {
  ar: {
    code: 'arb',
    stemmer: () => import('@orama/stemmers/arabic'),
    stopWords: () => import('@orama/stopwords/arabic'),
  },
  bg: {
    code: 'bul',
    stemmer: () => import('@orama/stemmers/bulgarian'),
    stopWords: () => import('@orama/stopwords/bulgarian'),
  },
  da: {
    code: 'dan',
    stemmer: () => import('@orama/stemmers/danish'),
    stopWords: () => import('@orama/stopwords/danish'),
  },
  de: {
    code: 'deu',
    stemmer: () => import('@orama/stemmers/german'),
    stopWords: () => import('@orama/stopwords/german'),
  },
  el: {
    code: 'ell',
    stemmer: () => import('@orama/stemmers/greek'),
    stopWords: () => import('@orama/stopwords/greek'),
  },
  en: {
    code: 'eng',
    stemmer: () => import('@orama/stemmers/english'),
    stopWords: () => import('@orama/stopwords/english'),
    alsoStopWords: ['a'],
  },
  es: {
    code: 'spa',
    stemmer: () => import('@orama/stemmers/spanish'),
    stopWords: () => import('@orama/stopwords/spanish'),
  },
  fi: {
    code: 'fin',
    stemmer: () => import('@orama/stemmers/finnish'),
    stopWords: () => import('@orama/stopwords/finnish'),
  },
  fr: {
    code: 'fra',
    stemmer: () => import('@orama/stemmers/french'),
    stopWords: () => import('@orama/stopwords/french'),
  },
  ga: {
    code: 'gle',
    stemmer: () => import('@orama/stemmers/irish'),
    stopWords: () => import('@orama/stopwords/irish'),
  },
  hi: {
    code: 'hin',
    stemmer: () => import('@orama/stemmers/indian'),
    stopWords: () => import('@orama/stopwords/indian'),
  },
  hu: {
    code: 'hun',
    stemmer: () => import('@orama/stemmers/hungarian'),
    stopWords: () => import('@orama/stopwords/hungarian'),
  },
  hy: {
    code: 'hye',
    stemmer: () => import('@orama/stemmers/armenian'),
    stopWords: () => import('@orama/stopwords/armenian'),
  },
  id: {
    code: 'ind',
    stemmer: () => import('@orama/stemmers/indonesian'),
    stopWords: () => import('@orama/stopwords/indonesian'),
  },
  it: {
    code: 'ita',
    stemmer: () => import('@orama/stemmers/italian'),
    stopWords: () => import('@orama/stopwords/italian'),
  },
  lt: {
    code: 'lit',
    stemmer: () => import('@orama/stemmers/lithuanian'),
    stopWords: () => import('@orama/stopwords/lithuanian'),
  },
  ne: {
    code: 'npi',
    stemmer: () => import('@orama/stemmers/nepali'),
    stopWords: () => import('@orama/stopwords/nepali'),
  },
  nl: {
    code: 'nld',
    stemmer: () => import('@orama/stemmers/dutch'),
    stopWords: () => import('@orama/stopwords/dutch'),
  },
  no: {
    code: 'nob',
    stemmer: () => import('@orama/stemmers/norwegian'),
    stopWords: () => import('@orama/stopwords/norwegian'),
  },
  pt: {
    code: 'por',
    stemmer: () => import('@orama/stemmers/portuguese'),
    stopWords: () => import('@orama/stopwords/portuguese'),
  },
  ro: {
    code: 'ron',
    stemmer: () => import('@orama/stemmers/romanian'),
    stopWords: () => import('@orama/stopwords/romanian'),
  },
  ru: {
    code: 'rus',
    stemmer: () => import('@orama/stemmers/russian'),
    stopWords: () => import('@orama/stopwords/russian'),
  },
  sr: {
    code: 'srp',
    stemmer: () => import('@orama/stemmers/serbian'),
    stopWords: () => import('@orama/stopwords/serbian'),
  },
  sv: {
    code: 'swe',
    stemmer: () => import('@orama/stemmers/swedish'),
    stopWords: () => import('@orama/stopwords/swedish'),
  },
  ta: {
    code: 'tam',
    stemmer: () => import('@orama/stemmers/tamil'),
    stopWords: () => import('@orama/stopwords/tamil'),
  },
  tr: {
    code: 'tur',
    stemmer: () => import('@orama/stemmers/turkish'),
    stopWords: () => import('@orama/stopwords/turkish'),
  },
  uk: {
    code: 'ukr',
    stemmer: () => import('@orama/stemmers/ukrainian'),
    stopWords: () => import('@orama/stopwords/ukrainian'),
  },
}

export const isLanguage = (value: unknown): value is Language =>
  value === 'none' || (typeof value === 'string' && Object.hasOwn(languages, value))
