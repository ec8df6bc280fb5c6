// Which plugins ended the process, kept in DATA_DIR over its restarts: one that does so again and
// again is left out, and the rest serves.
import { dirname, join, resolve, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Log } from '#ports/adapter.ts'
import { builtInDir, readJson, stampOf, writeJsonAtomic } from '../management/sources.ts'

/** `stamp`: of its files then; others have not ended anything. */
type End = {
  readonly entry: string
  readonly name: string
  readonly stamp: string
  readonly at: number
  readonly why: string
}
/**
 * `loading`: whose code began to run and has not come to serve. A process that dies meanwhile
 * leaves it there.
 */
type Kept = { readonly ends: readonly End[]; readonly loading: readonly string[] }
type Known = { readonly entry: string; readonly name: string }

export type Crashes = {
  /**
   * Runs code of the plugin for the first time; should the process not survive it, the next one
   * knows.
   */
  during<T>(entry: string, act: () => Promise<T>): Promise<T>
  /** Why the plugin is not to be loaded, as a sentence; undefined where it may be. */
  refusal(entry: string): { readonly name: string; readonly why: string } | undefined
  /** An operator wants it all the same. */
  forget(entry: string): void
  /**
   * Notes whose code threw what nobody caught, by its stack. Synchronous: the process is about to
   * end.
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
/** Where a package is installed, what it depends on lies beside it. */
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
/** The plugin in whose folder the innermost of these lies; the platform itself lies in nobody's. */
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
  // What the process before was about to load when it died.
  let ends = [
    ...left.ends,
    ...left.loading.map(entry =>
      endOf({ entry, name: '' }, 'the process ended while it was loaded'),
    ),
  ]
  const recorded = new Set<string>()
  let loading: readonly string[] = []
  /** A disk that is full keeps nobody from loading. */
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
      // While the process stops, more may be thrown, and several may hand on one error: it ends
      // once.
      if (recorded.has(found.entry)) return found.name
      recorded.add(found.entry)
      ends = [...ends, endOf(found, (error as Error).message.slice(0, 300))]
      // It is known who it was: whoever happened to be loaded at that moment is not blamed too.
      loading = []
      keep()
      log('error', 'plugin.crashed', { plugin: found.name, source: found.entry, error })
      return found.name
    },
  }
}
