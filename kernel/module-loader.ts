// Imports a plugin as its files say now. A file whose text, or whose imports' text, has changed
// comes under a new tag in its URL; the others stay as they are,
// since whatever was imported once is kept by the process for good. Nothing outside the plugin and
// its contracts is imported twice.
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { dirname } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Plugin } from './plugin.ts'

/** Where a plugin's default export is. */
export type Source = { readonly entry: string }
/**
 * One file as a plugin has imported it: under which URL, what stood in it, and what it imports of
 * the plugin's own.
 */
type Imported = { readonly url: string; readonly digest: string; readonly imports: Set<string> }
/** By the URL of the file. */
type View = Map<string, Imported>

/**
 * The bare names under which a plugin anywhere on the disk finds this kernel, its ports, and what
 * its plugins let others use.
 */
const ownNames = [
  ['agent-platform/plugin', 'kernel/index'],
  ['agent-platform/contract', 'contracts/contract'],
  ['agent-platform/faults', 'contracts/faults'],
  [/^agent-platform\/ports\/([\w-]+)$/, 'ports/$1'],
  [/^agent-platform\/plugins\/([\w-]+)$/, 'plugins/$1/api'],
] as const
/** `.ts` as it stands, `.js` where it was published. */
const kind = import.meta.filename.slice(-3)
const ownFile = (specifier: string): string | undefined => {
  const name = ownNames.find(([pattern]) =>
    typeof pattern === 'string' ? pattern === specifier : pattern.test(specifier),
  )
  return name && new URL(`../${specifier.replace(name[0], name[1])}${kind}`, import.meta.url).href
}
const contractsUrl = new URL('../contracts/', import.meta.url).href
/** The wire's own vocabulary is the kernel's: one for all. */
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

/** A syntax error says where only in the first line of its stack. */
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
/** As the process imports it: shared with other kernels, and with its compiled code kept. */
export const importOnce = async ({ entry }: Source): Promise<Plugin> =>
  pluginIn((await import(pathToFileURL(entry).href)) as object)

/**
 * What is still true of what was imported: nothing that has changed, and nothing that imports it,
 * directly or not.
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

/** `id`: of this kernel, for others may live in the same process. */
export function createModuleLoader(id: string) {
  /** By a plugin's folder. */
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
        // What another plugin lets others use is what that one serves now.
        const url = [...views.values()].map(other => other.get(file)?.url).find(Boolean)
        return url !== undefined && /\/api\.[jt]s$/.test(file) ? { ...found, url } : found
      }
      // What is required stays as it was when it is required again.
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
    /** The plugin as its files say now. Rejects with a sentence. One at a time. */
    async load({ entry }: Source): Promise<Plugin> {
      const folder = folderOf(entry)
      const file = pathToFileURL(entry).href
      const before = views.get(folder) ?? (new Map() as View)
      const view = unchanged(before)
      views.set(folder, view)
      count++
      try {
        // Another value each time: it is another generation, even if nothing has changed.
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
