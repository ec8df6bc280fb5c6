// Records in DATA_DIR which plugins ended the process. A plugin that does so repeatedly is left
// out, and the others serve.
import { dirname, join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Log } from '#ports/adapter.ts'
import { readJson, writeJsonAtomic } from '../json-file.ts'
import { builtInDir, stampOf } from './sources.ts'

/**
 * One end of the process. `stamp`: of the plugin's files at that time; changed files may be loaded
 * again.
 */
type End = {
  readonly entry: string
  readonly name: string
  readonly stamp: string
  readonly at: number
  readonly why: string
}
/**
 * `loading`: entries of plugins whose code runs but does not serve yet. A process that dies leaves
 * them here.
 */
type Kept = { readonly ends: readonly End[]; readonly loading: readonly string[] }
type Known = { readonly entry: string; readonly name: string }

export type Crashes = {
  /**
   * Runs a plugin's code for the first time. If the process dies meanwhile, the next process knows
   * which plugin it was.
   */
  during<T>(entry: string, act: () => Promise<T>): Promise<T>
  /** The sentence that says why the plugin is left out; undefined when it may be loaded. */
  refusal(entry: string): { readonly name: string; readonly why: string } | undefined
  /** Forgets the plugin's ends, because an operator loads it again. */
  forget(entry: string): void
  /**
   * Records the plugin whose code threw the error, by its stack. Synchronous, because the process
   * is about to end.
   */
  record(error: unknown, serving: readonly Known[]): string | undefined
}
type Parts = {
  readonly dataDir: string
  readonly now: () => number
  readonly log: Log
  readonly endsMax: number
  readonly withinMs: number
}

const fileName = 'crashes.json'
const home = resolve(builtInDir, '..')
const isIn = (folder: string, path: string) => path.startsWith(folder + sep)
const isOurs = (entry: string) => entry.startsWith(builtInDir)
/** The folder of the installation: a package's dependencies lie beside it. */
const rootOf = (entry: string) =>
  entry.includes('/node_modules/')
    ? entry.slice(0, entry.indexOf('/node_modules/'))
    : dirname(entry)

/** The file of a frame such as `    at name (file:///folder/plugin.js?gen=2:10:5)`. */
function fileOf(frame: string): string | undefined {
  const open = frame.lastIndexOf(' (')
  const place = open < 0 ? frame.replace(/^ {4}at (?:async )?/, '') : frame.slice(open + 2)
  const [path = ''] = place.replace(/:\d{1,9}:\d{1,9}\)?$/, '').split('?', 1)
  if (path.startsWith('file:///') && URL.canParse(path)) return fileURLToPath(path)
  return path.startsWith('/') ? path : undefined
}
/** The files of a stack, the innermost first. */
function filesIn(error: unknown): string[] {
  const { stack = '' } = error instanceof Error ? error : {}
  return stack
    .split('\n')
    .filter(line => line.startsWith('    at '))
    .flatMap(line => fileOf(line) ?? [])
}
/**
 * The plugin whose folder has the innermost of these files. The platform's own files belong to no
 * plugin.
 */
function culprit(files: readonly string[], plugins: readonly Known[]): Known | undefined {
  const others = plugins
    .filter(({ entry }) => entry !== '' && !isOurs(entry))
    .toSorted((a, b) => b.entry.length - a.entry.length)
  for (const file of files) {
    const found =
      others.find(({ entry }) => isIn(dirname(entry), file)) ??
      (isIn(home, file) ? undefined : others.find(({ entry }) => isIn(rootOf(entry), file)))
    if (found) return found
  }
  return undefined
}

export function createCrashes({ dataDir, now, log, endsMax, withinMs }: Parts): Crashes {
  const path = join(resolve(dataDir), fileName)
  const read = () =>
    readJson<Kept>(path, { ends: [], loading: [] }, kept => ({
      ends: [...kept.ends],
      loading: kept.loading.map(String),
    }))
  const stamped = (entry: string) => {
    try {
      return stampOf({ entry })
    } catch {
      return 'gone'
    }
  }
  const endOf = ({ entry, name }: Known, why: string): End => ({
    entry,
    name,
    stamp: stamped(entry),
    at: now(),
    why,
  })
  const left = read()
  // The plugins that the previous process was loading when it died.
  let ends = [
    ...left.ends,
    ...left.loading.map(entry =>
      endOf({ entry, name: '' }, 'the process ended while it was loaded'),
    ),
  ]
  const recorded = new Set<string>()
  let loading: readonly string[] = []
  /** Writes the record. A full disk must not keep plugins from loading. */
  const keep = () => {
    ends = ends.filter(({ at }) => now() - at < withinMs)
    try {
      writeJsonAtomic(path, { ends, loading } satisfies Kept)
    } catch (error) {
      log('warn', 'plugin.crash_record', { error })
    }
  }
  if (left.loading.length > 0) keep()

  return {
    async during(entry, act) {
      if (isOurs(entry)) return act()
      loading = [...loading, entry]
      keep()
      try {
        return await act()
      } finally {
        loading = loading.filter(one => one !== entry)
        keep()
      }
    },
    refusal(entry) {
      const its = ends.filter(
        end => end.entry === entry && now() - end.at < withinMs && end.stamp === stamped(entry),
      )
      const last = its.at(-1)
      if (!last || its.length < endsMax) return undefined
      return {
        name: its.find(({ name }) => name !== '')?.name ?? '',
        why:
          `It ended the process ${its.length} times within ${withinMs / 3_600_000} h ` +
          `(${last.why}), and is left out. Load it again, or mend it.`,
      }
    },
    forget(entry) {
      if (!ends.some(end => end.entry === entry)) return
      ends = ends.filter(end => end.entry !== entry)
      keep()
    },
    record(error, serving) {
      const found = culprit(filesIn(error), [
        ...serving,
        ...loading.map(entry => ({ entry, name: '' })),
      ])
      if (!found) return undefined
      // More errors may follow while the process stops, and one error may come twice. It counts as
      // one end.
      if (recorded.has(found.entry)) return found.name
      recorded.add(found.entry)
      ends = [...ends, endOf(found, (error as Error).message.slice(0, 300))]
      // The culprit is known, so the plugins that are being loaded are not blamed too.
      loading = []
      keep()
      log('error', 'plugin.crashed', { plugin: found.name, source: found.entry, error })
      return found.name
    },
  }
}
