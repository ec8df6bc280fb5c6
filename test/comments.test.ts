// Comments are read by people who did not grow up with English: no sentence has more than 25 words.
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { complain } from './support/rules/complaints.ts'
import { longIn, wordsMax } from './support/rules/sentences.ts'

const home = resolve(import.meta.dirname, '..')

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
const longOf = (source: string): string[] => longIn(commentsOf(source))

test('a long sentence is found, and where it ends is seen', () => {
  const long = 'one '.repeat(wordsMax + 1).trim()
  assert.equal(longOf(`/** ${long}. */`), [`${long}.`])
  assert.equal(longOf(`  // One ${long.slice(12)}\n  // one. One ${long.slice(8)}.\n`), [])
  assert.equal(longOf(`const text = '${long}'`), [])
})

test('no sentence of a comment has more than 25 words', () => {
  const files = globSync('{kernel,ports,contracts,adapters,plugins}/**/*.{ts,mjs}', {
    cwd: home,
  }).filter(file => !file.endsWith('.test.ts'))
  assert.ok(files.length > 150, 'files are found')
  complain(
    files.flatMap(file =>
      longOf(readFileSync(join(home, file), 'utf8')).map(sentence => `${file}: ${sentence}`),
    ),
  )
})

test.run()
