// The house rules that a compiler does not know. Each failure names the file and the line.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'

const home = resolve(import.meta.dirname, '..')
const programs = globSync('{kernel,ports,adapters,plugins,contracts,test}/**/*.{ts,mjs}', {
  cwd: home,
})
  .filter(file => !file.includes('node_modules'))
  .sort()
const files = programs.filter(file => file.endsWith('.ts'))
const sources = files.filter(file => !file.startsWith('test/') && !file.endsWith('.test.ts'))
const textOf = (file: string) => readFileSync(join(home, file), 'utf8')
const linesOf = (file: string) => textOf(file).split('\n')

const lineAt = (text: string, index: number) => text.slice(0, index).split('\n').length

/**
 * Every import of a file of this repository, as a path from its root. It may be of a value or of a
 * type, static or dynamic, on one line or several.
 */
function importsOf(file: string): { line: number; target: string }[] {
  const text = textOf(file)
  const literal = /(?<![.\w])(?:from\b|import\b\s*\(?)\s*(['"])([#.][^'"\n]*)\1/g
  return [...text.matchAll(literal)].map(({ 0: whole, 2: name = '', index }) => {
    const target =
      name === '#kernel'
        ? 'kernel/index.ts'
        : name.startsWith('#')
          ? name.slice(1)
          : relative(home, resolve(home, dirname(file), name))
    return { line: lineAt(text, index + whole.length), target }
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

/** What they import is known only when they run, so no rule about imports sees it. */
const computing: Readonly<Record<string, string>> = {
  'kernel/adapters.ts': 'a setting names the adapter of each port; the meter lies beside them',
  'kernel/cli/run.ts': 'the kits and the commands of operators are found by path',
  'kernel/module-loader.ts': 'a setting or an operator names the plugins',
  'test/docs.test.ts': 'what each API and each port exports must have its page',
  'test/expressions.test.ts': 'the patterns of every contract are checked',
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

const linesMax = 300
/** Files that are longer, with their lines: none may join them, and each may only get shorter. */
const longer: Readonly<Record<string, number>> = {
  'adapters/_shared/models/provider.test.ts': 364,
  'adapters/_shared/mongodb/indexes.test.ts': 342,
  'adapters/_shared/mongodb/indexes.ts': 312,
  'adapters/_shared/opensearch/opensearch.test.ts': 307,
  'adapters/_shared/opensearch/passages.ts': 324,
  'adapters/_shared/search/checks.ts': 321,
  'adapters/_shared/sqlite/sqlite.test.ts': 308,
  'adapters/billing/ledger.ts': 376,
  'adapters/blobs/s3.ts': 376,
  'adapters/eventlog/mongodb.ts': 490,
  'adapters/http/restify.ts': 312,
  'adapters/models/openai.test.ts': 413,
  'adapters/queue/agenda.test.ts': 416,
  'adapters/queue/storage.ts': 472,
  'adapters/search/mongodb.ts': 301,
  'adapters/storage/mongodb.ts': 363,
  'contracts/runs.ts': 358,
  'kernel/cli/run.ts': 422,
  'kernel/kernel.ts': 416,
  'kernel/management/plugin-registry.ts': 481,
  'kernel/settings.ts': 446,
  'plugins/files/files.test.ts': 350,
  'plugins/identity/identity.test.ts': 398,
  'plugins/operator/copy/copy.test.ts': 422,
  'plugins/runs/admission/admit.ts': 302,
  'plugins/runs/engine/resume-plan.test.ts': 525,
  'plugins/runs/engine/slots.test.ts': 314,
  'plugins/runs/engine/stall-watchdog.test.ts': 325,
  'plugins/runs/engine/takeover.test.ts': 418,
  'plugins/runs/journal/bounds.test.ts': 343,
  'plugins/runs/journal/state.ts': 364,
  'plugins/runs/prompt/context.test.ts': 344,
  'plugins/runs/prompt/planning.test.ts': 395,
  'plugins/runs/runs.test.ts': 503,
  'plugins/runs/sessions/transcripts.ts': 346,
  'plugins/runs/steps/model-call.test.ts': 469,
  'plugins/runs/steps/model-call.ts': 332,
  'plugins/runs/steps/tool-calls.ts': 392,
  'plugins/runs/tools/tools.test.ts': 315,
  'plugins/tools/calculator.test.ts': 323,
  'test/bench/soak.ts': 331,
  'test/docs/pages.ts': 376,
  'test/hostile/requests.ts': 482,
  'test/http/edge.test.ts': 424,
  'test/http/server.test.ts': 403,
  'test/http/streamed-body.test.ts': 391,
  'test/kernel/declared-ports.test.ts': 323,
  'test/kernel/lifecycle.test.ts': 317,
  'test/kit/billing.ts': 328,
  'test/kit/eventlog.ts': 321,
  'test/kit/queue.ts': 315,
  'test/kit/search-ranking.ts': 311,
  'test/kit/search.ts': 603,
  'test/operator/figures.test.ts': 317,
  'test/sim/scripts.ts': 431,
  'test/sim/simulated-cluster.ts': 477,
}
test('no file has more than 300 lines', () => {
  complain(
    files
      .filter(file => linesOf(file).length - 1 > (longer[file] ?? linesMax))
      .map(file => `${file} has ${linesOf(file).length - 1} lines`),
  )
  complain(
    Object.keys(longer)
      .filter(file => !files.includes(file) || linesOf(file).length - 1 <= linesMax)
      .map(file => `${file} is listed as longer than ${linesMax} lines, and is not`),
  )
})

test('no line has more than 100 columns', () => {
  complain(
    files.flatMap(file =>
      linesOf(file).flatMap((text, i) =>
        text.length > 100 ? [`${file}:${i + 1} has ${text.length} columns`] : [],
      ),
    ),
  )
})

test('the kernel stays small', () => {
  const linesIn = (folder: RegExp) =>
    sources.filter(file => folder.test(file)).reduce((sum, file) => sum + linesOf(file).length, 0)
  const bounds = [
    ['kernel/', /^kernel\/[^/]+$/, 3000],
    ['kernel/access/', /^kernel\/access\//, 300],
    ['kernel/cli/', /^kernel\/cli\//, 800],
    ['kernel/loading/', /^kernel\/loading\//, 500],
    ['kernel/scoped-ports/', /^kernel\/scoped-ports\//, 800],
    ['kernel/isolation/', /^kernel\/isolation\//, 950],
    ['kernel/management/', /^kernel\/management\//, 850],
    ['kernel/request-body/', /^kernel\/request-body\//, 480],
    ['kernel/telemetry/', /^kernel\/telemetry\//, 250],
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
  const variable = /^(?:export )?(?:let|var) /
  const collection = String.raw`new (?:Map|Set|WeakMap|WeakSet)(?:<.*>)?\(\)`
  const machine = String.raw`new (?:AbortController|EventEmitter|Ajv\w*)\b`
  const filled = new RegExp(
    String.raw`^(?:export )?const \w+(?:: [^=]+)? = ` +
      String.raw`(?:${collection}|${machine}|\[\];?$|\{\};?$)`,
  )
  complain(
    sources.flatMap(file =>
      linesOf(file).flatMap((text, i) =>
        variable.test(text) || filled.test(text) ? [`${file}:${i + 1} ${text.trim()}`] : [],
      ),
    ),
  )
})

test('time, randomness and ids come from the clock port alone', () => {
  const time = /\bDate\.now\(|\bnew Date\(\)|\bperformance\.now\(/
  const chance = /\bMath\.random\(|\brandomUUID\(|\brandomBytes\((?!count)/
  const outside = /(?<![.\w])(?:set(?:Timeout|Interval|Immediate)|fetch)\(/
  const isImpure = (text: string) => time.test(text) || chance.test(text) || outside.test(text)
  const watched = sources.filter(file => file.startsWith('kernel/') || file.startsWith('plugins/'))
  complain(
    watched.flatMap(file =>
      linesOf(file).flatMap((text, i) =>
        isImpure(text.replace(/clock\.randomBytes\(/g, '').replace(/^\s*\/\/.*/, ''))
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
