// Pages are read by people who did not grow up with English: no sentence has more than 25 words.
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { complain } from './support/rules/complaints.ts'
import { longIn, wordsMax } from './support/rules/sentences.ts'

const home = resolve(import.meta.dirname, '..')

/**
 * The prose of a page: its paragraphs, items and cells, each as one text. Blocks of code are none.
 * A link is its words, and a name in backticks is one word.
 */
function textsOf(page: string): string[] {
  return page
    .replace(/^( *)```[\s\S]*?^\1```$|^ {4}.*$|^<!--.*-->$/gm, '')
    .replace(/`[^`\n]*`/g, 'Code')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/\*\*|<\/?\w+>/g, '')
    .split(/\n\s*\n|\n(?=[ ]*(?:[-*]|\d+\.) )|\n(?=[#|])|(?<=^\|.*)\|/m)
    .map(text => text.replace(/^\s*(?:[-*#]+|\d+\.) /, '').trim())
    .filter(text => text !== '')
}

test('a long sentence of a page is found wherever it stands, and code is not read', () => {
  const words = (count: number) => `One${' one'.repeat(count - 1)}`
  const long = words(wordsMax + 1)
  const right = words(wordsMax)
  const found = (page: string) => longIn(textsOf(page))
  assert.equal(found(`# One\n\nOne. ${long}.\n`), [`${long}.`])
  assert.equal(found(`- ${long}\n- one\n\n1. ${long}\n`), [long, long])
  assert.equal(found(`| one | two |\n|---|---|\n| one | ${long} |\n`), [long])
  assert.equal(found(`**One.** ${right}. (One ${words(3)}.) ${right}\n`), [])
  assert.equal(found(`- ${right}\n- ${right}\n\n| ${right} | ${right} |\n# ${right}\n`), [])
  assert.equal(found(`\`${long}\` one\n\n    ${long}\n\n\`\`\`sh\n${long}\n\`\`\`\n`), [])
})

test('no sentence of a page has more than 25 words', () => {
  const pages = globSync(
    ['*.md', 'docs/**/*.md', '{kernel,ports,adapters,plugins}/**/*.md', 'test/examples/**/*.md'],
    { cwd: home },
  ).filter(file => !file.includes('node_modules'))
  assert.ok(pages.length > 120, 'the pages are found')
  complain(
    pages.flatMap(file =>
      longIn(textsOf(readFileSync(join(home, file), 'utf8'))).map(text => `${file}: ${text}`),
    ),
  )
})

test.run()
