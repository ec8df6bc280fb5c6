// Backup and restore of the embedded default. Other adapters are backed up by their operators' own
// tools.
import { existsSync, readdirSync, chmodSync, mkdirSync } from 'node:fs'
import { copyFile, mkdir, open, readdir, rm, stat } from 'node:fs/promises'
import { join, resolve, sep } from 'node:path'
import { Type as t } from 'typebox'
import { fault, offlineCommand, type Installation } from '#kernel'
import type { SearchEngine } from '#ports/search.ts'
import type { StorageEngine } from '#ports/storage.ts'

const database = 'platform.db'
const index = 'search.db'
/**
 * Files that are not copied as they are: live databases, which are copied separately, their locks,
 * and half-written files.
 */
const isLive = (name: string) =>
  name.startsWith(database) || name.startsWith(index) || name.startsWith('.')
const isWithin = (path: string, folder: string) => path === folder || path.startsWith(folder + sep)

function requireEmpty(path: string, field: string): void {
  const refuse = (why: string, cause?: unknown) =>
    fault('INVALID_FIELD', { field, why: `${path} ${why}` }, { cause })
  let names: readonly string[]
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    names = readdirSync(path)
  } catch (cause) {
    throw refuse(`cannot be made a folder (${(cause as NodeJS.ErrnoException).code})`, cause)
  }
  if (names.length > 0) throw refuse('is not empty')
  chmodSync(path, 0o700)
}

/** A copy of DATA_DIR is whole only when everything lies there, under its usual name. */
function requireEmbedded({
  DATA_DIR,
  STORAGE_URL,
  EVENTLOG_URL = STORAGE_URL,
  BLOBS_URL = 'file:',
  SEARCH_URL = 'sqlite:',
}: Installation['settings']): void {
  for (const [setting, value, name] of [
    ['STORAGE_URL', STORAGE_URL, database],
    ['EVENTLOG_URL', EVENTLOG_URL, database],
    ['BLOBS_URL', BLOBS_URL, 'blobs'],
    ['SEARCH_URL', SEARCH_URL, index],
  ] as const) {
    const { pathname, protocol } = new URL(value)
    // Another service is saved by its own tools, and what is found there can be made anew.
    if (
      (setting === 'SEARCH_URL' && protocol !== 'sqlite:') ||
      pathname === '' ||
      pathname === '/' ||
      resolve(decodeURIComponent(pathname)) === join(resolve(DATA_DIR), name)
    )
      continue
    throw fault('UNAVAILABLE', {
      what: 'backup',
      why: `${setting} keeps its data elsewhere than in DATA_DIR/${name}; save it by its own tools`,
    })
  }
}

async function sync(path: string): Promise<void> {
  const handle = await open(path, 'r')
  await handle.sync().finally(() => handle.close())
}

const unlessGone = (error: NodeJS.ErrnoException) => {
  if (error.code !== 'ENOENT') throw error
  return undefined
}
/**
 * Files and folders, each on disk before it resolves; links are followed. What is removed meanwhile
 * is not missed: it had to go.
 */
async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true, mode: 0o700 })
  for (const name of (await readdir(from)).filter(entry => !isLive(entry))) {
    const [source, target] = [join(from, name), join(to, name)]
    const found = await stat(source).catch(unlessGone)
    if (found?.isDirectory()) await copyTree(source, target)
    else if (found?.isFile()) await copyFile(source, target).then(() => sync(target), unlessGone)
  }
  await sync(to)
}

/**
 * The database first, then the files: blobs are only ever added, so every one that the copy names
 * is there.
 */
export async function backUp(
  settings: Installation['settings'],
  storage: StorageEngine,
  search: SearchEngine,
  path: string,
): Promise<{ to: string }> {
  const to = resolve(path)
  const dataDir = resolve(settings.DATA_DIR)
  if (!storage.backup)
    throw fault('UNAVAILABLE', { what: 'backup', why: 'this storage is saved by its own tools' })
  requireEmbedded(settings)
  if (isWithin(to, dataDir))
    throw fault('INVALID_FIELD', { field: 'to', why: 'must lie outside of DATA_DIR' })
  requireEmpty(to, 'to')
  try {
    await storage.backup(join(to, database))
    await search.backup?.(join(to, index))
    await copyTree(dataDir, to)
  } catch (error) {
    // Removes half a copy, so that nobody uses it and the next backup can run.
    for (const name of await readdir(to)) await rm(join(to, name), { recursive: true, force: true })
    throw error
  }
  return { to }
}

/**
 * With the server stopped: a copy becomes the DATA_DIR. The database comes last, so that a restore
 * that was cut off is no installation.
 */
export async function restore(
  from: string,
  dataDir: string,
): Promise<{ from: string; to: string }> {
  const source = resolve(from)
  const to = resolve(dataDir)
  if (!existsSync(join(source, database)))
    throw fault('INVALID_FIELD', {
      field: 'from',
      why: `${source} holds no backup (${database} is missing)`,
    })
  if (isWithin(to, source))
    throw fault('INVALID_FIELD', { field: 'from', why: 'must not hold DATA_DIR itself' })
  requireEmpty(to, 'DATA_DIR')
  await copyTree(source, to)
  for (const name of [index, database].filter(file => existsSync(join(source, file)))) {
    await copyFile(join(source, name), join(to, name))
    await sync(join(to, name))
  }
  await sync(to)
  return { from: source, to }
}

export const backupCommand = offlineCommand({
  summary: 'Copies the embedded installation into an empty folder while it runs.',
  options: t.Object(
    { to: t.String({ minLength: 1, description: 'The folder to make.' }) },
    { additionalProperties: false },
  ),
  offline: true,
  joins: true,
  async run({ settings, bind }, { to }) {
    const { engine } = await bind({}, ['storage', 'search'])
    return backUp(settings, engine('storage'), engine('search'), to)
  },
})
export const restoreCommand = offlineCommand({
  summary: 'Makes a copy the DATA_DIR; the server is stopped.',
  options: t.Object(
    { from: t.String({ minLength: 1, description: 'The folder that a backup made.' }) },
    { additionalProperties: false },
  ),
  offline: true,
  async run({ settings: { DATA_DIR }, isServed }, { from }) {
    if (await isServed())
      throw fault('INVALID_FIELD', {
        field: 'DATA_DIR',
        why: 'a server runs on it; stop it first',
      })
    return restore(from, DATA_DIR)
  },
})
