// Comments are read by people who did not grow up with English: no sentence has more than 25 words.
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const home = resolve(import.meta.dirname, '..')
const wordsMax = 25

/** The comments of a file, each as one text; usage lines and examples are no prose. */
function commentsOf(source: string): string[] {
  const comment = /\/\*\*[\s\S]*?\*\/|(?:^[ \t]*\/\/.*\n)+/gm
  return [...source.matchAll(comment)].map(([block]) =>
    block
      .replace(/^\s*\/\/ {2,}.*$|@example\s+\S+/gm, '')
      .replace(/^\s*(?:\/\/|\/\*\*|\*\/|\*)|\*\/$/gm, '')
      .replace(/\s+/g, ' ')
      .trim(),
  )
}
const sentencesOf = (text: string) => text.split(/(?<=[.!?])\s+(?=[^\p{Ll}])/u)
const wordsIn = (sentence: string) =>
  sentence.split(' ').filter(word => /[\p{L}\p{N}]/u.test(word)).length

const longIn = (file: string): string[] =>
  commentsOf(readFileSync(join(home, file), 'utf8'))
    .flatMap(sentencesOf)
    .filter(sentence => wordsIn(sentence) > wordsMax)
    .map(sentence => `${file}: ${sentence}`)

test('a long sentence is found, and where it ends is seen', () => {
  const long = 'one '.repeat(wordsMax + 1).trim()
  const found = (text: string) =>
    commentsOf(text)
      .flatMap(sentencesOf)
      .filter(sentence => wordsIn(sentence) > wordsMax)
  assert.equal(found(`/** ${long}. */`), [`${long}.`])
  assert.equal(found(`  // One ${long.slice(12)}\n  // one. One ${long.slice(8)}.\n`), [])
  assert.equal(found(`const text = '${long}'`), [])
})

test('no sentence of a comment has more than 25 words', () => {
  const files = globSync('{kernel,ports,contracts,adapters,plugins}/**/*.{ts,mjs}', {
    cwd: home,
  }).filter(file => !file.endsWith('.test.ts'))
  assert.ok(files.length > 150, 'files are found')
  assert.equal(files.flatMap(longIn), [])
})

test.run()
