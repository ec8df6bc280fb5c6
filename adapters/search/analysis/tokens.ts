// Finds the words of a text. Offsets are those of the given text; only the word itself is
// normalised.

/** [start, end) in UTF-16 units; `word` is in Unicode's form NFKC and lower case. */
export type Token = {
  readonly start: number
  readonly end: number
  readonly word: string
  /** A pair of characters from a script without spaces. Pairs are not stemmed. */
  readonly pair: boolean
}

// Scripts without spaces. No rule finds words there, so pairs of neighbouring characters serve as
// words, as in Lucene's CJK analysis.
const dense =
  ['Han', 'Hiragana', 'Katakana', 'Hangul', 'Thai', 'Lao', 'Khmer', 'Myanmar']
    .map(script => String.raw`\p{sc=${script}}`)
    .join('') + 'ー'
const letter = String.raw`[[\p{L}\p{M}\p{N}]--[${dense}]]`
/**
 * An apostrophe belongs to a word when letters follow. So do the signs that distinguish C++ and C#
 * from C.
 */
const word = String.raw`${letter}+(?:['’ʼ]${letter}+)*(?:(?:\+\+|#)(?!${letter}))?`

/** Characters of a term. Nobody searches for a whole word that is longer. */
const wordCharactersMax = 64
/**
 * Normalising takes quadratic time in the marks behind one letter. So only so many UTF-16 units of
 * an overlong word are normalised.
 */
const normalisedLength = wordCharactersMax * 4
/** `matchAll` copies an expression, so these constants keep no position. */
const expression = new RegExp(`([${dense}]+)|${word}`, 'gv')
/** The same for ASCII text, where no script is dense. It takes a fraction of the time. */
const asciiExpression = /[A-Za-z0-9]+(?:'[A-Za-z0-9]+)*(?:(?:\+\+|#)(?![A-Za-z0-9]))?/g
const notInAscii = /[^\0-\x7f]/
const notInWords = /[^\p{L}\p{M}\p{N}'+#]/gu

const normal = (text: string): string =>
  text
    .slice(0, normalisedLength)
    .normalize('NFKC')
    .toLowerCase()
    .replace(/[’ʼ]/g, "'")
    .replace(notInWords, '')
    .slice(0, wordCharactersMax)
function* asciiTokens(text: string): Generator<Token> {
  for (const { 0: whole, index } of text.matchAll(asciiExpression))
    yield {
      start: index,
      end: index + whole.length,
      word: whole.slice(0, wordCharactersMax).toLowerCase(),
      pair: false,
    }
}

function* pairs(run: string, from: number): Generator<Token> {
  const characters = Array.from(run)
  if (characters.length === 1)
    yield { start: from, end: from + run.length, word: normal(run), pair: true }
  for (let at = 0, start = from; at + 1 < characters.length; start += characters[at++]!.length) {
    const both = characters[at]! + characters[at + 1]!
    yield { start, end: start + both.length, word: normal(both), pair: true }
  }
}

function* anyTokens(text: string): Generator<Token> {
  for (const match of text.matchAll(expression)) {
    const { 0: whole, 1: run, index } = match
    if (run !== undefined) yield* pairs(run, index)
    else yield { start: index, end: index + whole.length, word: normal(whole), pair: false }
  }
}
export const tokens = (text: string): Generator<Token> =>
  notInAscii.test(text) ? anyTokens(text) : asciiTokens(text)

const special: Readonly<Record<string, string>> = {
  ß: 'ss',
  æ: 'ae',
  œ: 'oe',
  ø: 'o',
  ł: 'l',
  đ: 'd',
  ı: 'i',
}
/**
 * Accents and points that people leave out when they type; vowel signs of Indic scripts are letters
 * and stay.
 */
const marks = /[\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u064b-\u0652\u0670\u0640]/g
const plain = /^[a-z0-9+#]*$/
export const folded = (text: string): string =>
  plain.test(text)
    ? text
    : text
        .normalize('NFD')
        .replace(marks, '')
        .normalize('NFC')
        .replace(/[ßæœøłđı]/g, found => special[found]!)
