// Sentences of a text, and how long they are: for readers who did not grow up with English.
export const wordsMax = 25

const sentencesOf = (text: string): string[] => text.split(/(?<=[.!?][)"”]?)\s+(?=[^\p{Ll}])/u)
const wordsIn = (sentence: string): number =>
  sentence.split(/\s+/).filter(word => /[\p{L}\p{N}]/u.test(word)).length

/** The sentences of these texts with more words than one may have. */
export const longIn = (texts: readonly string[]): string[] =>
  texts.flatMap(sentencesOf).filter(sentence => wordsIn(sentence) > wordsMax)
