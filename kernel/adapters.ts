// Binds each port to the adapter that its URL names. Ports that others use are opened first.
import { existsSync, mkdirSync, chmodSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { fault, hasCode } from '#contracts/faults.ts'
import type { Adapter, Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import type { Queue } from '#ports/queue.ts'
import type { Durable, Lifecycle } from '#ports/token.ts'
import type { Metric } from 'prom-client'
import { valueIn, type Environment, type Settings } from './settings/settings.ts'
import { readJson } from './json-file.ts'
import { createAdapterMetrics } from './telemetry/adapter-metrics.ts'

export type Engines = {
  engine<T>(name: string): T
  readonly entries: () => readonly (readonly [name: string, engine: Partial<Lifecycle & Durable>])[]
  /**
   * Resolves when everything applied so far, on every port, is on disk. Undefined when nothing is
   * pending.
   */
  durable(): Promise<unknown>
  /** Changes when writes that had been applied were lost before they were on disk. */
  epoch(): number
  /** Metrics of the adapters' calls, and of the queue's jobs with these names. */
  metrics(jobs: () => readonly string[]): readonly Metric[]
  close(): Promise<void>
}

const home = new URL('../adapters/', import.meta.url)
/** The file ending of this program: `.ts` as source, `.js` when published. */
const kind = import.meta.filename.slice(-3)
const isAdapter = (file: string) => /\.[jt]s$/.test(file) && !/\.(?:test|d)\.[jt]s$/.test(file)
/** The built-in adapters' folder, then the operator's folders: `<port>/<scheme>.js` in each. */
const homesOf = (folders: readonly string[]) => [
  home,
  ...folders.map(folder => pathToFileURL(`${resolve(folder)}/`)),
]
export const schemesOf = (port: string, folders: readonly string[]): string[] =>
  homesOf(folders)
    .map(base => new URL(`${port}/`, base))
    .filter(existsSync)
    .flatMap(folder =>
      readdirSync(folder)
        .filter(isAdapter)
        .map(file => `${file.slice(0, -3)}:`),
    )

/** Packages that `adapters add` installed. Each `folder` is relative to DATA_DIR. */
type Added = readonly { readonly folder: string }[]
export const addedPath = (dataDir: string) => join(dataDir, 'adapters.json')
export const addedIn = (dataDir: string) =>
  readJson<Added>(addedPath(dataDir), [], list =>
    list.map(one => ({ ...one, folder: join(one.folder) })),
  )
/** The folders of ADAPTERS_DIR, which commas separate, then the installed packages. */
export const foldersOf = ({
  ADAPTERS_DIR,
  DATA_DIR,
}: Pick<Settings, 'ADAPTERS_DIR' | 'DATA_DIR'>): string[] => [
  ...(ADAPTERS_DIR ?? '')
    .split(',')
    .map(folder => folder.trim())
    .filter(Boolean),
  ...addedIn(DATA_DIR).map(({ folder }) => resolve(DATA_DIR, folder)),
]
const settingOf = (port: string): keyof Settings => `${port.toUpperCase()}_URL` as keyof Settings
export const ports = [
  'clock',
  'traces',
  'storage',
  'eventlog',
  'billing',
  'queue',
  'blobs',
  'search',
  'mail',
  'models',
  'limits',
  'http',
] as const
/** Ports without metrics: called at every step, or by the server itself. */
const unwatched = new Set(['clock', 'traces', 'http'])
export type PortName = (typeof ports)[number]

/**
 * A URL has one host (RFC 3986, 3.2.2), but a database may have several. The first stays in the
 * URL, the others become its option `hosts`.
 */
const withOneHost = (value: string): string =>
  value
    .replace(
      /^([a-z][\w+.:-]*:\/\/(?:[^@/?#]*@)?[^,/?#]+),([^/?#]+)([^?#]*)\??/i,
      (_, first: string, others: string, path: string) =>
        `${first}${path}?hosts=${encodeURIComponent(others)}&`,
    )
    .replace(/&$/, '')

/** Imports the adapter of a URL. INVALID_FIELD names the setting and the schemes that exist. */
export async function loadAdapter(
  port: string,
  setting: string,
  given: string,
  folders: readonly string[],
): Promise<{ adapter: Adapter; url: URL }> {
  const value = withOneHost(given)
  const refuse = (why: string) => fault('INVALID_FIELD', { field: setting, why })
  if (!URL.canParse(value))
    throw refuse(`is not a URL; it starts with one of ${schemesOf(port, folders).join(' ')}`)
  const url = new URL(value)
  const scheme = url.protocol.slice(0, -1)
  const file = homesOf(folders)
    .flatMap(base => [kind, '.js'].map(ending => new URL(`${port}/${scheme}${ending}`, base)))
    .find(existsSync)
  if (!/^[a-z][a-z0-9+]*$/.test(scheme) || !file)
    throw refuse(
      `there is no adapter "${scheme}:"; there are ${schemesOf(port, folders).join(' ')}`,
    )
  const { default: adapter } = (await import(file.href)) as { default?: Adapter }
  if (adapter?.port !== port || adapter.scheme !== scheme || typeof adapter.open !== 'function')
    throw refuse(
      `${fileURLToPath(file)} has no adapter of ${port} for ${scheme}: as its default ` +
        'export (defineAdapter)',
    )
  for (const name of url.searchParams.keys()) {
    const known = Object.keys(adapter.options ?? {})
    if (!known.includes(name))
      throw refuse(`${scheme}: has no option "${name}"; there are ${known.join(', ') || 'none'}`)
  }
  return { adapter, url }
}

/** Names the setting in an error about an option of its URL. */
function named(error: unknown, setting: string, { options = {} }: Adapter): unknown {
  if (!hasCode(error, 'INVALID_FIELD') || !Object.hasOwn(options, String(error.values['field'])))
    return error
  return fault(
    'INVALID_FIELD',
    { ...error.values, field: `${setting} (${error.values['field']})` },
    { cause: error },
  )
}

/** Makes DATA_DIR private: it holds secrets and customers' data, so no other user may read it. */
function prepareDataDir(dataDir: string): string {
  const path = resolve(dataDir)
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    chmodSync(path, 0o700)
  } catch (cause) {
    throw fault(
      'INVALID_FIELD',
      {
        field: 'DATA_DIR',
        why: `${path} cannot be made a private folder (${(cause as NodeJS.ErrnoException).code})`,
      },
      { cause },
    )
  }
  return path
}

/**
 * Ports that follow the storage where an adapter of that scheme exists, with their adapter
 * otherwise.
 */
const fallbacks: Partial<Record<PortName, string>> = {
  blobs: 'file:',
  limits: 'memory:',
  search: 'sqlite:',
}
/** The setting that chooses the port's adapter: its own, or the storage's. */
export function chosenFor(
  port: PortName,
  settings: Settings,
  folders: readonly string[],
): { readonly setting: string; readonly value: string } {
  const own = settingOf(port)
  const given = settings[own]
  const fallback = fallbacks[port]
  if (given !== undefined) return { setting: own, value: String(given) }
  const scheme = settings.STORAGE_URL.slice(0, settings.STORAGE_URL.indexOf(':') + 1)
  if (fallback === undefined || (scheme !== fallback && schemesOf(port, folders).includes(scheme)))
    return { setting: 'STORAGE_URL', value: settings.STORAGE_URL }
  return { setting: own, value: fallback }
}

export async function bindAdapters({
  env,
  settings,
  log,
  only = ports,
  given = {},
}: {
  env: Environment
  settings: Settings
  log: Log
  only?: readonly PortName[]
  given?: Readonly<Record<string, unknown>>
}): Promise<Engines> {
  const dataDir = prepareDataDir(settings.DATA_DIR)
  const bound = new Map<string, Partial<Lifecycle & Durable>>(
    Object.entries(given as Record<string, Lifecycle>),
  )
  const engine = <T>(name: string): T => {
    if (!bound.has(name)) throw new Error(`The port ${name} is not bound.`)
    return bound.get(name) as T
  }
  const close = async () => {
    for (const [name, part] of [...bound].reverse())
      await part
        .close?.()
        .catch((error: unknown) => log('error', 'adapter.close', { port: name, error }))
  }
  const open = async (name: PortName) => {
    if (bound.has(name)) return
    const folders = foldersOf(settings)
    const { setting, value } = chosenFor(name, settings, folders)
    const { adapter, url } = await loadAdapter(name, setting, value, folders)
    for (const need of adapter.needs ?? []) await open(need as PortName)
    const clock = bound.get('clock') as Clock | undefined
    const opening = adapter
      .open({
        url,
        dataDir,
        clock: clock as Clock,
        log: (level, event, fields) => log(level, event, { ...fields, port: name }),
        secret: wanted => valueIn(env, wanted),
        engine,
      })
      .catch((error: unknown) => Promise.reject(named(error, setting, adapter)))
    bound.set(name, (await opening) as Partial<Lifecycle & Durable>)
  }
  try {
    for (const name of only) await open(name)
  } catch (error) {
    await close()
    throw error
  }
  // Adapters call each other directly. All other calls pass the metrics wrapper.
  const meter = createAdapterMetrics(engine<Clock>('clock'))
  const faces = new Map(
    [...bound].map(
      ([name, part]) => [name, unwatched.has(name) ? part : meter.watch(name, part)] as const,
    ),
  )
  const syncing = [...faces.values()].filter(part => part.durable)
  return {
    engine: <T>(name: string) => (faces.get(name) ?? engine(name)) as T,
    close,
    entries: () => [...faces],
    metrics: jobs => meter.metrics(faces.get('queue') as unknown as Queue, jobs),
    epoch: () => syncing.reduce((sum, part) => sum + (part.epoch?.() ?? 0), 0),
    durable: () =>
      syncing.length === 1
        ? syncing[0]!.durable!()
        : Promise.all(syncing.map(part => part.durable!())),
  }
}
