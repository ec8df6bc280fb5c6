// Splits text into sentences and words, well enough to compare them with a question in the most
// common languages.

const marksPattern = /\p{M}+/gu
const wordsPattern =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]+|[\p{L}\p{N}]+/gu
const unspacedPattern = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u
const sentenceEnds = /(?<=[.!?؟…]["'»”)\]]?)\s+|(?<=[。！？])|\n\s*/u
const sentenceMax = 600
const stemMax = 6

const stopWordsOf = {
  en:
    'a about after all also am an and any are as at be because been but by can could did do ' +
    'does for from had has have he her his how i if in into is it its just me my no not of ' +
    'on or our please she should so some tell than that the their them then there these they ' +
    'this to up us was we were what when where which who whom why will with would you your',
  fr:
    'a ai alors au aux avec avoir bien c ce ces cette ci comme comment d dans de des dis dit ' +
    'donc du elle elles en es est et etait ete etre eu eux fait il ils j je l la le les leur ' +
    'leurs lui m ma mais me mes moi mon n ne nos notre nous on ou par pas peut plus pour ' +
    'pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se ses si son sont ' +
    'sur t ta te tes toi ton tu un une vos votre vous y',
  es:
    'al como con cual cuando de del donde el ella ellos en era es esa ese esta este esto fue ' +
    'ha hay la las lo los mas mi muy no nos o para pero por porque que quien se si sin sobre ' +
    'son su sus tu un una y ya yo',
  de:
    'als am an auch auf aus bei bin bis bist da das dass dem den der des die durch ein eine ' +
    'einem einen einer er es fur hat ich ihr im in ist kann mein mit nach nicht noch oder ' +
    'sein sich sie sind so uber um und uns von war was wenn wer wie wir wird wo zu zum zur',
} as const
const stopWords: ReadonlySet<string> = new Set(
  Object.values(stopWordsOf).flatMap(words => words.split(' ')),
)
const frenchOnly: ReadonlySet<string> = new Set(
  stopWordsOf.fr
    .split(' ')
    .filter(word => word.length > 1 && !stopWordsOf.en.split(' ').includes(word)),
)
const englishOnly: ReadonlySet<string> = new Set(
  stopWordsOf.en
    .split(' ')
    .filter(word => word.length > 1 && !stopWordsOf.fr.split(' ').includes(word)),
)

export type Language = 'en' | 'fr'

/** Lower case, without accents, so that `Éléphant` and `elephant` are one word. */
const folded = (text: string): string =>
  text.toLowerCase().normalize('NFKD').replace(marksPattern, '')

/**
 * Cuts a word to its first letters, so that `deliver` and `delivery` match, and `livraison` and
 * `livraisons`. Crude, and the same in every language.
 */
function stem(word: string): string {
  if (word.length > stemMax) return word.slice(0, stemMax)
  return word.length > 3 && /[sx]$/.test(word) ? word.slice(0, -1) : word
}

/**
 * The stems of a text's words without stop words, in order, with repetitions. Scripts without
 * spaces give pairs of characters.
 */
export function stemsOf(text: string): string[] {
  const stems: string[] = []
  for (const [word] of folded(text).matchAll(wordsPattern)) {
    if (unspacedPattern.test(word))
      for (let at = 0; at < Math.max(1, word.length - 1); at++) stems.push(word.slice(at, at + 2))
    else if (!stopWords.has(word)) stems.push(stem(word))
  }
  return stems
}

/** The sentences of a text: trimmed, none empty, none longer than some lines of print. */
export function sentencesOf(text: string): string[] {
  return text
    .split(sentenceEnds)
    .map(sentence => sentence.trim())
    .filter(sentence => sentence !== '')
    .map(sentence =>
      sentence.length > sentenceMax ? `${sentence.slice(0, sentenceMax)}…` : sentence,
    )
}

/** Returns French when more of the text's small words are French than English. */
export function languageOf(text: string): Language {
  let balance = 0
  for (const [word] of folded(text.slice(0, 4000)).matchAll(wordsPattern))
    balance += frenchOnly.has(word) ? 1 : englishOnly.has(word) ? -1 : 0
  return balance > 0 ? 'fr' : 'en'
}
