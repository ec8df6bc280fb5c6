// Imports a plugin from its current files. A changed file, and every file that imports it, gets a
// new tag in its URL. Unchanged files keep their URL, because a process never forgets an imported
// module. Nothing outside the plugin and its contracts is imported twice.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { dirname } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Plugin } from './plugin.ts'

/** Where a plugin's default export is. */
export type Source = { readonly entry: string }
/**
 * One imported file: its URL, a digest of its text, and its imports among the plugin's own files.
 */
type Imported = { readonly url: string; readonly digest: string; readonly imports: Set<string> }
/** Imported files by the URL of the file. */
type View = Map<string, Imported>

/**
 * Package names under which plugins, wherever they lie, import this kernel, its ports and its
 * plugins' public files.
 */
const ownNames = [
  ['agent-platform/plugin', 'kernel/index'],
  ['agent-platform/contract', 'contracts/contract'],
  ['agent-platform/faults', 'contracts/faults'],
  [/^agent-platform\/ports\/([\w-]+)$/, 'ports/$1'],
  [/^agent-platform\/plugins\/([\w-]+)$/, 'plugins/$1/api'],
] as const
/** The file ending of this program: `.ts` as source, `.js` when published. */
const kind = import.meta.filename.slice(-3)
const ownFile = (specifier: string): string | undefined => {
  const name = ownNames.find(([pattern]) =>
    typeof pattern === 'string' ? pattern === specifier : pattern.test(specifier),
  )
  return name && new URL(`../${specifier.replace(name[0], name[1])}${kind}`, import.meta.url).href
}
const contractsUrl = new URL('../contracts/', import.meta.url).href
/** The vocabulary of the wire belongs to the kernel, so all plugins share one copy. */
const shared = new Set(
  ['contract', 'faults', 'statuses'].map(name => `${contractsUrl}${name}${kind}`),
)

const plain = (url: string) => url.split('?', 1)[0]!
const folderOf = (entry: string) => `${pathToFileURL(dirname(entry)).href}/`
const isWithin = (folder: string, url: string) =>
  url.startsWith(folder) && !url.slice(folder.length).includes('node_modules/')
const digestOf = (url: string): string => {
  try {
    return createHash('sha256')
      .update(readFileSync(fileURLToPath(url)))
      .digest('base64url')
  } catch {
    return 'unreadable'
  }
}

/** Adds the place to a syntax error, which only the first line of its stack tells. */
function importError(error: unknown, entry: string): Error {
  const { message, stack = '' } = error as Error
  const place =
    error instanceof SyntaxError && stack.startsWith('file:')
      ? ` (${plain(stack.split('\n', 1)[0]!).replace('file://', '')})`
      : ''
  return new Error(
    `${entry} cannot be imported: ${message.replaceAll(/\?gen=[\w.-]+/g, '')}${place}`,
    { cause: error },
  )
}
function pluginIn({ default: plugin }: { default?: Partial<Plugin> }): Plugin {
  if (
    typeof plugin?.name !== 'string' ||
    typeof plugin.version !== 'string' ||
    typeof plugin.kernel !== 'string'
  )
    throw new Error('it has no plugin as its default export (definePlugin)')
  return plugin as Plugin
}
/**
 * Imports in the ordinary way: the module is shared with other kernels, and its compiled code is
 * cached.
 */
export const importOnce = async ({ entry }: Source): Promise<Plugin> =>
  pluginIn((await import(pathToFileURL(entry).href)) as object)

/**
 * The imported files that are still current: neither they nor their imports, direct or indirect,
 * have changed.
 */
function unchanged(view: View): View {
  const stale = new Set(
    [...view].filter(([file, { digest }]) => digestOf(file) !== digest).map(([file]) => file),
  )
  for (let size = -1; size !== stale.size; ) {
    size = stale.size
    for (const [file, { imports }] of view)
      if ([...imports].some(one => stale.has(one))) stale.add(file)
  }
  return new Map([...view].filter(([file]) => !stale.has(file)))
}

export type ModuleLoader = ReturnType<typeof createModuleLoader>

/** `id` identifies this kernel, because one process may have several. */
export function createModuleLoader(id: string) {
  /** Imported files by the plugin's folder. */
  const views = new Map<string, View>()
  let count = 0
  const folderFor = (url: string | undefined) =>
    url?.includes(`?gen=${id}.`)
      ? [...views.keys()].find(folder => views.get(folder)!.get(plain(url))?.url === url)
      : undefined

  const hooks = registerHooks({
    resolve(specifier, context, next) {
      const own = ownFile(specifier)
      if (own !== undefined && !own.includes('/plugins/')) return next(own, context)
      const found = next(own ?? specifier, context)
      const isEntry = found.url.includes(`?gen=${id}.`)
      const folder = isEntry
        ? folderOf(fileURLToPath(plain(found.url)))
        : folderFor(context.parentURL)
      const view = folder === undefined ? undefined : views.get(folder)
      if (folder === undefined || !view) return found
      const file = plain(found.url)
      if (!isWithin(folder, file) && !(file.startsWith(contractsUrl) && !shared.has(file))) {
        // Another plugin's public file is the one that is serving now.
        const url = [...views.values()].map(other => other.get(file)?.url).find(Boolean)
        return url !== undefined && /\/api\.[jt]s$/.test(file) ? { ...found, url } : found
      }
      // CommonJS is refused, because requiring a module again answers the cached one.
      if (found.format === 'commonjs')
        throw new Error(
          `${fileURLToPath(file)} is CommonJS; a plugin is written in ES modules ("type": ` +
            '"module" in its package.json).',
        )
      const known = view.get(file) ?? {
        url: isEntry ? found.url : `${file}?gen=${id}.${count}`,
        digest: digestOf(file),
        imports: new Set<string>(),
      }
      view.set(file, known)
      if (!isEntry && context.parentURL !== undefined)
        view.get(plain(context.parentURL))?.imports.add(file)
      return { ...found, url: known.url }
    },
  })

  return {
    /** The plugin from its current files. Rejects with a sentence. Loads one plugin at a time. */
    async load({ entry }: Source): Promise<Plugin> {
      const folder = folderOf(entry)
      const file = pathToFileURL(entry).href
      const before = views.get(folder) ?? (new Map() as View)
      const view = unchanged(before)
      views.set(folder, view)
      count++
      try {
        // A new object each time, so that it is a new generation even when nothing has changed.
        return {
          ...pluginIn(
            (await import(view.get(file)?.url ?? `${file}?gen=${id}.${count}`)) as object,
          ),
        }
      } catch (error) {
        views.set(folder, before)
        throw importError(error, entry)
      }
    },
    close: () => hooks.deregister(),
  }
}
