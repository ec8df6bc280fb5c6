// No regular expression of the product takes more than time in proportion to its input: no nested
// or adjacent quantifiers without bounds, none that begins anew at each character.
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { analyse } from 'scslre'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { expressionsIn } from './expressions.ts'

const home = resolve(import.meta.dirname, '..')
const files = globSync('{kernel,ports,adapters,plugins,contracts}/**/*.ts', { cwd: home })
  .filter(file => !/\.(?:test|proof)\.ts$/.test(file) && !file.includes('node_modules'))
  .sort()
const textOf = (file: string) => readFileSync(join(home, file), 'utf8')

/**
 * What is made of parts at run time, seen to by hand: its parts are constants or escaped, and its
 * repetitions are bounded or disjoint.
 */
const made = [
  'adapters/models/offline/intents.ts',
  'adapters/search/analysis/tokens.ts',
  'plugins/files/artifacts.ts',
]

const slowness = (source: string, flags: string) => [
  ...new Set(
    analyse({ source, flags }).reports.map(
      ({ type, exponential }) => `${type}${exponential ? ', exponential' : ''}`,
    ),
  ),
]

test('the check finds what it is for, and nothing else', () => {
  for (const slow of ['(a+)+$', '\\s*\\s*x', '\\s+$', '^\\s*(\\S+)\\s*([\\s\\S]*)x$', '(?:a|a)*b'])
    assert.ok(slowness(slow, '').length > 0, slow)
  for (const fast of ['^\\s+', '^a+b+$', '\\s{1,9}$', '^[a-z]{1,20}(?:-[a-z]{1,20})*$'])
    assert.equal(slowness(fast, ''), [], fast)
  const text = [
    'const a = /x\\/[/]y/g // not /this/',
    "const b = '/nor/ this', c = 4 / 2 / 1",
    'const d = `${e / 2} /no/ ${/yes/.source}` / 3',
    'return /z/u.test(f) /* /no/ */ && g[0] / h() / 2',
  ].join('\n')
  assert.equal(
    expressionsIn(text).map(({ line, source, flags }) => `${line} ${source} ${flags}`),
    ['1 x\\/[/]y g', '3 yes ', '4 z u'],
  )
})

test('every expression in the sources', () => {
  const all = files.flatMap(file => expressionsIn(textOf(file)).map(each => ({ file, ...each })))
  assert.ok(all.length > 100, `only ${all.length} are found`)
  const slow = all
    .map(each => ({ ...each, why: slowness(each.source, each.flags) }))
    .filter(({ why }) => why.length > 0)
  assert.equal(
    slow.map(({ file, line, source, why }) => `${file}:${line} /${source}/ ${why.join(', ')}`),
    [],
  )
})

test('every pattern of the contracts', async () => {
  const found = new Set<string>()
  const walk = (value: unknown, name = '') => {
    if (typeof value === 'string' && name === 'pattern') found.add(value)
    else if (typeof value === 'object' && value !== null)
      for (const [inner, part] of Object.entries(value)) walk(part, inner)
  }
  for (const file of globSync('contracts/*.ts', { cwd: home }))
    walk({ ...((await import(join(home, file))) as object) })
  assert.ok(found.size >= 4, String(found.size))
  assert.equal(
    [...found]
      .map(pattern => [pattern, ...slowness(pattern, 'u')])
      .filter(({ length }) => length > 1),
    [],
  )
})

test('what is made at run time is known', () => {
  assert.equal(
    files.filter(file => /\bRegExp\(/.test(textOf(file))),
    made,
  )
})

test.run()
