// The house rules that a compiler does not know. Each failure names the file and the line.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const home = resolve(import.meta.dirname, '..')
const files = globSync('{kernel,ports,adapters,plugins,contracts,test}/**/*.ts', { cwd: home })
  .filter(file => !file.includes('node_modules'))
  .sort()
const sources = files.filter(file => !file.startsWith('test/') && !file.endsWith('.test.ts'))
const textOf = (file: string) => readFileSync(join(home, file), 'utf8')
const linesOf = (file: string) => textOf(file).split('\n')

/** Every import of a file of this repository, as a path from its root. */
function importsOf(file: string): { line: number; target: string }[] {
  return linesOf(file).flatMap((text, i) => {
    const name = /(?:from|import)\s*\(?\s*'([^']+)'/.exec(text)?.[1]
    if (!name || !(name.startsWith('.') || name.startsWith('#'))) return []
    const target =
      name === '#kernel'
        ? 'kernel/index.ts'
        : name.startsWith('#')
          ? name.slice(1)
          : relative(home, resolve(home, dirname(file), name))
    return [{ line: i + 1, target }]
  })
}

function mayImport(file: string, target: string): boolean {
  const [room, name] = file.split('/')
  switch (room) {
    case 'contracts':
      return target.startsWith('contracts/')
    case 'ports':
      return target.startsWith('ports/') || target.startsWith('contracts/')
    case 'kernel':
      return (
        target.startsWith('kernel/') ||
        target.startsWith('ports/') ||
        ['contracts/contract.ts', 'contracts/faults.ts', 'contracts/statuses.ts'].includes(target)
      )
    case 'adapters':
      return (
        target.startsWith('ports/') ||
        target.startsWith('contracts/') ||
        target.startsWith('adapters/_shared/') ||
        target.startsWith(`adapters/${name}/`)
      )
    case 'plugins':
      return (
        target === 'kernel/index.ts' ||
        target.startsWith('ports/') ||
        target.startsWith('contracts/') ||
        target.startsWith(`plugins/${name}/`) ||
        /^plugins\/[^/]+\/api\.ts$/.test(target)
      )
    default:
      return true
  }
}

const complain = (found: string[]) => assert.equal(found, [], `\n${found.join('\n')}\n`)

test('imports point inward', () => {
  assert.ok(sources.length > 50, 'the sources are found')
  complain(
    sources.flatMap(file =>
      importsOf(file)
        .filter(({ target }) => !mayImport(file, target))
        .map(({ line, target }) => `${file}:${line} imports ${target}`),
    ),
  )
})

test('no file has more than 300 lines', () => {
  complain(
    files
      .filter(file => linesOf(file).length > 300)
      .map(file => `${file} has ${linesOf(file).length} lines`),
  )
})

test('the kernel stays small', () => {
  const linesIn = (folder: RegExp) =>
    sources.filter(file => folder.test(file)).reduce((sum, file) => sum + linesOf(file).length, 0)
  const bounds = [
    ['kernel/', /^kernel\/[^/]+$/, 2100],
    ['kernel/access/', /^kernel\/access\//, 300],
    ['kernel/cli/', /^kernel\/cli\//, 500],
    ['kernel/loading/', /^kernel\/loading\//, 500],
    ['kernel/scoped-ports/', /^kernel\/scoped-ports\//, 800],
    ['kernel/threads/', /^kernel\/threads\//, 600],
    ['kernel/wire/', /^kernel\/wire\//, 400],
  ] as const
  for (const [what, folder, most] of bounds)
    assert.ok(linesIn(folder) <= most, `${what} has ${linesIn(folder)} lines`)
})

test('every test file runs its tests', () => {
  complain(
    files
      .filter(file => file.endsWith('.test.ts') && !/\.run\(\)/.test(textOf(file)))
      .map(file => `${file} never calls .run()`),
  )
})

test('plugins, adapters and the kernel keep no state in modules', () => {
  // A table with contents is a constant; what is made empty is made to be filled.
  const stateful =
    /^(?:export )?(?:let|var) |^(?:export )?const \w+(?:: [^=]+)? = (?:new (?:Map|Set|WeakMap|WeakSet)(?:<.*>)?\(\)|new (?:AbortController|EventEmitter|Ajv\w*)\b|\[\];?$|\{\};?$)/
  complain(
    sources.flatMap(file =>
      linesOf(file).flatMap((text, i) =>
        stateful.test(text) ? [`${file}:${i + 1} ${text.trim()}`] : [],
      ),
    ),
  )
})

test('time, randomness and ids come from the clock port alone', () => {
  const impure =
    /\bDate\.now\(|\bnew Date\(\)|\bMath\.random\(|\bperformance\.now\(|\brandomUUID\(|\brandomBytes\((?!count)|(?<![.\w])set(?:Timeout|Interval|Immediate)\(|(?<![.\w])fetch\(/
  const watched = sources.filter(file => file.startsWith('kernel/') || file.startsWith('plugins/'))
  complain(
    watched.flatMap(file =>
      linesOf(file).flatMap((text, i) =>
        impure.test(text.replace(/clock\.randomBytes\(/g, '').replace(/^\s*\/\/.*/, ''))
          ? [`${file}:${i + 1} ${text.trim()}`]
          : [],
      ),
    ),
  )
})

test('nothing is left for later', () => {
  complain(
    sources.flatMap(file =>
      linesOf(file).flatMap((text, i) =>
        /\b(?:TODO|FIXME|XXX|not implemented|coming soon)\b/i.test(text)
          ? [`${file}:${i + 1} ${text.trim()}`]
          : [],
      ),
    ),
  )
})

test('the product writes to no console', () => {
  complain(
    sources.flatMap(file =>
      linesOf(file).flatMap((text, i) =>
        /\bconsole\.\w+\(/.test(text) ? [`${file}:${i + 1}`] : [],
      ),
    ),
  )
})

test('no error is swallowed by an empty catch', () => {
  complain(
    sources.flatMap(file =>
      linesOf(file).flatMap((text, i) =>
        /catch\s*(?:\(\w*\))?\s*\{\s*\}/.test(text) ? [`${file}:${i + 1} ${text.trim()}`] : [],
      ),
    ),
  )
})

test.run()
