// Which test files there are, and which are asked for.
import { execFileSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { files as programs, importsOf } from '../support/sources.ts'

export type TestFile = {
  readonly file: string
  /** A proof kills processes, installs packages or plays thousands of schedules: minutes. */
  readonly kind: 'test' | 'proof'
  readonly ownProcess: boolean
}

const home = resolve(import.meta.dirname, '../..')
const rooms = '{kernel,ports,adapters,plugins,contracts,test}'
/**
 * Tests that would disturb others in one process, or be disturbed, say so. Nock takes the place of
 * fetch for all; restify changes every response of node:http.
 */
const ownProcess = /^\/\/ own-process\b|^import nock |^import .* from 'node:https?'$/m

export function testFiles(): TestFile[] {
  return globSync(`${rooms}/**/*.{test,proof}.ts`, { cwd: home })
    .filter(file => !file.includes('node_modules'))
    .sort()
    .map(file => {
      const isProof = file.endsWith('.proof.ts')
      return {
        file,
        kind: isProof ? 'proof' : 'test',
        ownProcess: isProof || ownProcess.test(readFileSync(join(home, file), 'utf8')),
      }
    })
}

const git = (...args: string[]) =>
  execFileSync('git', args, { cwd: home, encoding: 'utf8' }).split('\n').filter(Boolean)

/** What differs from the commit, or from the branch's beginning, and what git does not know yet. */
export const changedSince = (commit: string): string[] => [
  ...git('diff', '--name-only', '--no-renames', '--relative', commit),
  ...git('ls-files', '--others', '--exclude-standard'),
]

const isProgram = new Set(programs)
/** The files that the file reaches through imports, itself included. */
function reachedFrom(file: string, known: Map<string, readonly string[]>): Set<string> {
  const reached = new Set<string>()
  const next = [file]
  for (let at = next.pop(); at !== undefined; at = next.pop()) {
    if (reached.has(at)) continue
    // One that was deleted is reached, too.
    reached.add(at)
    if (!isProgram.has(at)) continue
    let targets = known.get(at)
    if (!targets) {
      targets = importsOf(at).map(({ target }) => target)
      known.set(at, targets)
    }
    next.push(...targets)
  }
  return reached
}

/** A plugin's folder, or a port's among the adapters: `plugins/runs/`. */
const roomOf = (file: string) => /^(?:plugins|adapters)\/[^/]+\//.exec(file)?.[0]
/** Rules of the whole house; they take a second. */
const rules = [
  'architecture',
  'sizes',
  'function-lines',
  'comments',
  'pages',
  'docs',
  'documentation',
].map(rule => `test/${rule}.test.ts`)

/**
 * The tests that reach a changed file through imports, those in the same plugin's or port's folder,
 * and the rules of the house. A plugin that a test loads by its folder is not seen as an import.
 */
export function reaching(files: readonly TestFile[], changed: readonly string[]): TestFile[] {
  const known = new Map<string, readonly string[]>()
  const changedRooms = new Set(changed.map(roomOf).filter(room => room !== undefined))
  return files.filter(({ file }) => {
    const room = roomOf(file)
    return (
      rules.includes(file) ||
      (room !== undefined && changedRooms.has(room)) ||
      changed.some(one => reachedFrom(file, known).has(one))
    )
  })
}
