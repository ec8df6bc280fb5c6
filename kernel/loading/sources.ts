// Where plugins come from: folders of plugins/, folders of PLUGINS_DIR, and places that an operator
// named.
import { fault } from '#contracts/faults.ts'
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { importOnce, type Source } from '../module-loader.ts'
import type { Plugin } from '../plugin.ts'

export const builtInDir = fileURLToPath(new URL('../../plugins/', import.meta.url))
export const contractsDir = fileURLToPath(new URL('../../contracts/', import.meta.url))

/**
 * The plugin's file: the path itself, `plugin.ts` or `plugin.js` in it, or `main` of its
 * package.json.
 */
export function sourceAt(path: string, base = process.cwd()): Source {
  const full = isAbsolute(path) ? path : resolve(base, path)
  if (!existsSync(full)) throw fault('PLUGIN_REFUSED', { why: `There is nothing at ${full}.` })
  if (statSync(full).isFile()) return { entry: full }
  const named = existsSync(join(full, 'package.json'))
    ? (JSON.parse(readFileSync(join(full, 'package.json'), 'utf8')) as { main?: string }).main
    : undefined
  const found = [...(named === undefined ? [] : [named]), 'plugin.ts', 'plugin.js']
    .map(name => join(full, name))
    .find(existsSync)
  if (!found) {
    throw fault('PLUGIN_REFUSED', {
      why: `${full} has neither plugin.ts nor plugin.js, nor a package.json with "main".`,
    })
  }
  return { entry: found }
}

/** Each folder in `dir` that holds a plugin. */
export function sourcesIn(dir: string): Source[] {
  const names = readdirSync(dir, { withFileTypes: true })
    .filter(entry => entry.isDirectory())
    .map(({ name }) => name)
    .sort()
  return names
    .flatMap(name =>
      ['plugin.ts', 'plugin.js']
        .map(file => join(dir, name, file))
        .filter(existsSync)
        .slice(0, 1),
    )
    .map(entry => ({ entry }))
}

/** All of them; `loaded` are the entries that an operator named. */
export const sourcesOf = (loaded: readonly string[], pluginsDir: string | undefined): Source[] => [
  ...sourcesIn(builtInDir),
  ...(pluginsDir === undefined ? [] : sourcesIn(pluginsDir)),
  ...loaded.map(entry => ({ entry })),
]

/** The plugins of this program. */
export const loadPlugins = (): Promise<Plugin[]> =>
  Promise.all(sourcesIn(builtInDir).map(importOnce))

/** Changes with the plugin's files, and for a built-in plugin with the contracts. */
export function stampOf({ entry }: Source): string {
  const folders = [dirname(entry), ...(entry.startsWith(builtInDir) ? [contractsDir] : [])]
  const files = folders
    .flatMap(folder => readdirSync(folder, { recursive: true, withFileTypes: true }))
    .filter(
      file =>
        file.isFile() &&
        /\.(?:m?[jt]s|json)$/.test(file.name) &&
        !/\.test\.[jt]s$/.test(file.name) &&
        !file.parentPath.includes('node_modules'),
    )
  const changed = files.map(
    ({ parentPath, name }) =>
      statSync(join(parentPath, name), { throwIfNoEntry: false })?.mtimeMs ?? 0,
  )
  return `${files.length} ${Math.max(...changed)}`
}
