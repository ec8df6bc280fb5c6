// Finds and imports the adapter that a port's URL names.
import { existsSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { fault } from '#contracts/faults.ts'
import type { Adapter } from '#ports/adapter.ts'
import { readJson } from './json-file.ts'
import type { Settings } from './settings/settings.ts'

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
