// A copy of the embedded default while it runs, and its way back. Other adapters are saved by their operators' own tools.
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Type as t } from 'typebox'
import { fault } from '#contracts/faults.ts'
import type { StorageEngine } from '#ports/storage.ts'
import type { RunnableCommand } from './admin.ts'

/** What is never part of a copy: the live database (it is copied by itself), its lock, and the socket. */
const isLive = (name: string) => name.startsWith('platform.db') || name === 'admin.sock' || name.startsWith('.')

function requireEmpty(path: string, field: string): void {
  if (existsSync(path) && readdirSync(path).length > 0) throw fault('INVALID_FIELD', { field, why: `${path} is not empty` })
  mkdirSync(path, { recursive: true, mode: 0o700 })
  chmodSync(path, 0o700)
}

/** The database first, then the files: blobs are only ever added, so every one that the copy names is there. */
export const backupCommand = (dataDir: string, storage: StorageEngine): RunnableCommand => ({
  summary: 'Copies the embedded installation into an empty folder while it runs.',
  options: t.Object({ to: t.String({ minLength: 1, description: 'The folder to make.' }) }, { additionalProperties: false }),
  async run(options) {
    const to = resolve((options as { to: string }).to)
    if (!storage.backup) throw fault('UNAVAILABLE', { what: 'backup', why: 'this storage is saved by its own tools' })
    requireEmpty(to, 'to')
    await storage.backup(join(to, 'platform.db'))
    for (const name of readdirSync(dataDir).filter(name => !isLive(name))) cpSync(join(dataDir, name), join(to, name), { recursive: true })
    return { to }
  },
})

/** With the server stopped: a copy becomes the DATA_DIR. */
export function restore(from: string, dataDir: string): { from: string; to: string } {
  const source = resolve(from), to = resolve(dataDir)
  if (!existsSync(join(source, 'platform.db'))) throw fault('INVALID_FIELD', { field: 'from', why: `${source} holds no backup (platform.db is missing)` })
  requireEmpty(to, 'DATA_DIR')
  cpSync(source, to, { recursive: true })
  return { from: source, to }
}
