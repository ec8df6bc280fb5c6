// The file of the embedded search index: a list of collections, and a few tables for each.
import { DatabaseSync } from 'node:sqlite'
import { chmodSync } from 'node:fs'
import { fault } from '#contracts/faults.ts'
import { checkDurable } from '../../_shared/sqlite/database.ts'

/** Grows with every change of the tables that an older program could not read. */
const formatVersion = 1
/** "AgtS": tells this index from other files. */
const applicationId = 0x41677453
const pageBytes = 4096

const unavailable = (why: string, cause?: unknown) =>
  fault('UNAVAILABLE', { what: 'The search index', why }, { cause })
const numberOf = (db: DatabaseSync, pragma: string) =>
  Number(Object.values(db.prepare(`PRAGMA ${pragma}`).get() ?? {})[0])

export function adopt(db: DatabaseSync): void {
  const isEmpty = numberOf(db, 'schema_version') === 0
  const version = numberOf(db, 'user_version')
  if (!isEmpty && numberOf(db, 'application_id') !== applicationId)
    throw unavailable('its file belongs to another program')
  if (version > formatVersion)
    throw unavailable(
      `its format is ${version} and this program knows formats up to ${formatVersion}`,
    )
  if (!isEmpty) return
  const collection =
    'at INTEGER PRIMARY KEY AUTOINCREMENT, org TEXT NOT NULL, name TEXT NOT NULL, ' +
    'spec TEXT NOT NULL, analysis INTEGER NOT NULL, UNIQUE (org, name)'
  db.exec(`BEGIN IMMEDIATE;
    PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${formatVersion};
    CREATE TABLE collections (${collection}); COMMIT`)
}

/** Opens a connection. There is one that writes, and one that only reads committed data. */
export function openIndex({
  path,
  role,
  bytesMax,
}: {
  readonly path: string
  readonly role: 'write' | 'read'
  readonly bytesMax: number
}): DatabaseSync {
  let db: DatabaseSync | undefined
  try {
    db = new DatabaseSync(path, { timeout: 5000, readOnly: role === 'read' })
    db.exec('PRAGMA cache_size = -8192; PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF')
    if (role === 'read') {
      // A scan of all vectors reads the file where it lies, instead of copying every page of it.
      db.exec('PRAGMA mmap_size = 268435456')
      return db
    }
    chmodSync(path, 0o600)
    db.exec(
      'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = ' +
        '4000; PRAGMA journal_size_limit = 67108864',
    )
    if (bytesMax > 0) db.exec(`PRAGMA max_page_count = ${Math.ceil(bytesMax / pageBytes)}`)
    checkDurable(db, path)
    adopt(db)
    return db
  } catch (error) {
    db?.close()
    throw error instanceof Error && 'status' in error
      ? error
      : unavailable((error as Error).message, error)
  }
}
