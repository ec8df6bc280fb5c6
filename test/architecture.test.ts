// The house rules that a compiler does not know. Each failure names the file and the line.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { complain } from './support/rules/complaints.ts'
import {
  circlesIn,
  files,
  importsOf,
  isTest,
  lineAt,
  linesOf,
  programs,
  sources,
  textOf,
} from './support/sources.ts'

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
        // `adapters check` is the published kits, run by an operator.
        (name === 'operator' && target === 'test/conformance/check/check.ts') ||
        /^plugins\/[^/]+\/api\.ts$/.test(target)
      )
    default:
      return true
  }
}

const linesWhere = (isWrong: (text: string) => boolean, of: readonly string[] = sources) =>
  of.flatMap(file =>
    linesOf(file).flatMap((text, i) => (isWrong(text) ? [`${file}:${i + 1} ${text.trim()}`] : [])),
  )

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

test('no two files import each other, directly or not', () => {
  const targets = new Map(
    files.map(file => [file, importsOf(file).map(({ target }) => target)] as const),
  )
  complain(
    circlesIn(files, file => targets.get(file) ?? []).map(circle =>
      circle.toReversed().join(' → '),
    ),
  )
})

/** Parts from the bottom up: each imports of its own and of those before it. */
type Order = readonly (readonly string[])[]
function importsUpward(room: string, order: Order): string[] {
  const own = sources.filter(file => file.startsWith(room))
  const rank = (file: string) =>
    order.findIndex(part => part.includes(file.slice(room.length).split('/')[0]!))
  return [
    ...own.filter(file => rank(file) < 0).map(file => `${file} is not in the order`),
    ...order
      .filter((_, at) => !own.some(file => rank(file) === at))
      .map(part => `nothing of ${room} is in ${part.join(', ')}`),
    ...own.flatMap(file =>
      importsOf(file)
        .filter(({ target }) => target.startsWith(room) && rank(target) > rank(file))
        .map(({ line, target }) => `${file}:${line} imports ${target}`),
    ),
  ]
}

/**
 * The files beside the folders are not one part. The lowest hold what all folders name, the
 * highest put the folders together. Each folder is a part of its own, so none reach each other.
 */
const kernelOrder: Order = [
  [
    'commands.ts',
    'plugin.ts',
    'kernel-ports.ts',
    'module-loader.ts',
    'json-file.ts',
    'deadline.ts',
  ],
  ...['validation', 'settings', 'telemetry'].map(one => [one]),
  ['adapters.ts', 'engines.ts'],
  ...['loading', 'isolation', 'management'].map(one => [one]),
  ...['scoped-ports', 'request-body', 'routing', 'exchange'].map(one => [one]),
  ['kernel-info.ts', 'kernel.ts', 'boot.ts', 'index.ts'],
  ['cli'],
  ['main.ts'],
]
test('the folders of kernel/ import downward', () => {
  complain(importsUpward('kernel/', kernelOrder))
})

const runsOrder: Order = [
  ['collections.ts', 'config.ts', 'price.ts', 'run-summary.ts', 'api.ts'],
  ...['journal', 'telemetry', 'tools', 'retention', 'sessions', 'prompt', 'steps'].map(one => [
    one,
  ]),
  ...['admission', 'engine', 'views', 'verify'].map(one => [one]),
  ['agents.ts', 'runs.ts', 'plugin.ts'],
]
test('the folders of plugins/runs import downward', () => {
  complain(importsUpward('plugins/runs/', runsOrder))
})

test('what the adapters of one port alone use lies below that port', () => {
  const room = (file: string) => /^adapters\/_shared\/[^/]+|^[^/]+\/[^/]+/.exec(file)![0]
  const importers = (one: string) =>
    sources
      .filter(file => importsOf(file).some(({ target }) => room(target) === one))
      .map(room)
      .filter(other => other.startsWith('adapters/'))
  const portsAt = (one: string, seen = new Set([one])): Set<string> => {
    for (const other of importers(one)) if (!seen.has(other)) portsAt(other, seen.add(other))
    return new Set([...seen].filter(other => !other.startsWith('adapters/_shared/')))
  }
  complain(
    [...new Set(sources.map(room))]
      .filter(one => one.startsWith('adapters/_shared/') && portsAt(one).size < 2)
      .map(one => `${one} is not used by several ports`),
  )
})

/** What they import is known only when they run, so no rule about imports sees it. */
const computing: Readonly<Record<string, string>> = {
  'kernel/adapters.ts': 'a setting names the adapter of each port',
  'kernel/module-loader.ts': 'a setting or an operator names the plugins',
  'test/docs.test.ts': 'what each API and each port exports must have its page',
  'test/expressions.test.ts': 'the patterns of every contract are checked',
  'test/runner/lane.ts': 'it is told which test file to run',
}
test('only the loaders compute what they import', () => {
  // A literal is followed by the end of the call or by its options; all else is computed.
  const computed = /(?<![.\w])import\s*\((?!\s*(['"])[^'"\n]*\1\s*[,)])/g
  const found = programs.flatMap(file => {
    const text = textOf(file)
    return [...text.matchAll(computed)].map(({ index }) => ({ file, line: lineAt(text, index) }))
  })
  complain([
    ...found
      .filter(({ file }) => !(file in computing))
      .map(({ file, line }) => `${file}:${line} computes what it imports`),
    ...Object.keys(computing)
      .filter(name => !found.some(({ file }) => file === name))
      .map(name => `${name} is listed as computing what it imports, and does not`),
  ])
})

test('constants are written like all other names', () => {
  complain(
    files.flatMap(file =>
      linesOf(file).flatMap((text, i) =>
        /^(?:export )?const [A-Z][A-Z0-9_]*\b/.test(text) ? [`${file}:${i + 1} ${text}`] : [],
      ),
    ),
  )
})

test('every test file runs its tests', () => {
  complain(
    files
      .filter(file => isTest(file) && !/\.run\(\)/.test(textOf(file)))
      .map(file => `${file} never calls .run()`),
  )
})

test('plugins, adapters and the kernel keep no state in modules', () => {
  // A table with contents is a constant; what is made empty is made to be filled.
  const variable = /^(?:export )?(?:let|var) /
  const collection = String.raw`new (?:Map|Set|WeakMap|WeakSet)(?:<.*>)?\(\)`
  const machine = String.raw`new (?:AbortController|EventEmitter|Ajv\w*)\b`
  const filled = new RegExp(
    String.raw`^(?:export )?const \w+(?:: [^=]+)? = ` +
      String.raw`(?:${collection}|${machine}|\[\];?$|\{\};?$)`,
  )
  complain(linesWhere(text => variable.test(text) || filled.test(text)))
})

test('time, randomness and ids come from the clock port alone', () => {
  const time = /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(/
  const chance = /\bMath\.random\(|\brandomUUID\(|\brandomBytes\((?!count)/
  const outside = /(?<![.\w])(?:set(?:Timeout|Interval|Immediate)|fetch)\(/
  const isImpure = (text: string) => time.test(text) || chance.test(text) || outside.test(text)
  const watched = sources.filter(file => file.startsWith('kernel/') || file.startsWith('plugins/'))
  complain(
    linesWhere(
      text => isImpure(text.replace(/clock\.randomBytes\(/g, '').replace(/^\s*\/\/.*/, '')),
      watched,
    ),
  )
})

test('nothing is left for later', () => {
  const left = /\b(?:TODO|FIXME|XXX|not implemented|coming soon)\b/i
  complain(linesWhere(text => left.test(text)))
})

test('the product writes to no console', () => {
  complain(linesWhere(text => /\bconsole\.\w+\(/.test(text)))
})

test('no error is swallowed by an empty catch', () => {
  complain(linesWhere(text => /catch\s*(?:\(\w*\))?\s*\{\s*\}/.test(text)))
})

test.run()
