// What the documents name is there: every link, and every answer to "where is it?".
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const home = resolve(import.meta.dirname, '..')
const textOf = (file: string) => readFileSync(join(home, file), 'utf8')
const documents = globSync(
  ['*.md', 'docs/**/*.md', 'plugins/*/README.md', 'test/examples/*/*.md'],
  {
    cwd: home,
  },
).sort()

test('every link between documents and files leads somewhere', () => {
  const links = documents.flatMap(file =>
    [...textOf(file).matchAll(/\]\((?!https?:|mailto:|#)([^)#\s]+)(?:#[^)]*)?\)/g)].map(
      ([, target]) => ({ file, target: target! }),
    ),
  )
  assert.ok(links.length > 50, 'links are found')
  const broken = links.filter(
    ({ file, target }) => !existsSync(join(home, dirname(file), decodeURIComponent(target))),
  )
  assert.equal(broken, [])
})

test('every answer to "where is it?" names a file, and what stands in it', () => {
  const table = /## Where is it\?\n([\s\S]*?)\n## /.exec(textOf('ARCHITECTURE.md'))?.[1] ?? ''
  const rows = [...table.matchAll(/^\| (.+\?) \| `([^`]+)` `([^`]+)` \|$/gm)]
  assert.is(rows.length, 10, 'ten questions')
  for (const [, question, file, name] of rows)
    assert.ok(textOf(file!).includes(name!), `${question}: ${file} has ${name}`)
})

test('every source that a document names by its path is there', () => {
  const named = documents.flatMap(file =>
    [
      ...textOf(file).matchAll(
        /`((?:kernel|ports|adapters|plugins|contracts|test)\/[\w./-]+\.(?:ts|mjs|js|md))`/g,
      ),
    ].map(([, path]) => ({ file, path: path! })),
  )
  assert.ok(named.length > 50, 'paths are found')
  assert.equal(
    named.filter(({ path }) => !existsSync(join(home, path))),
    [],
  )
})

test('the glossary has at most forty terms, each once and in order', () => {
  const terms = [...textOf('docs/glossary.md').matchAll(/^\| (?!term |---)([^|]+) \|/gm)].map(
    ([, term]) => term!,
  )
  assert.ok(terms.length > 20 && terms.length <= 40, `${terms.length} terms`)
  assert.equal(terms, [...new Set(terms)].sort())
})

test.run()
