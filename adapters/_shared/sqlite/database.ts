// Opens a database file exclusively, and checks that it is the product's.
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import { chmodSync, mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { fault } from '#contracts/faults.ts'
import { createLru } from '../lru.ts'
import type { Start } from './protocol.ts'

/** Grows with every change of the tables that an older program could not read. */
const formatVersion = 1
/** "AgtP": tells the product's files from other people's. */
const applicationId = 0x41677450
const pageBytes = 4096
const statementsMax = 256

export type Row = (string | number | null)[]
export type Statement = {
  run(...values: SQLInputValue[]): number
  get(...values: SQLInputValue[]): Row | undefined
  all(...values: SQLInputValue[]): Row[]
}
export type Database = {
  readonly raw: DatabaseSync
  exec(sql: string): void
  /** Compiled once and kept, the most used ones. */
  prepare(sql: string): Statement
  close(): void
}

const unavailable = (path: string, why: string, cause?: unknown) =>
  fault('UNAVAILABLE', { what: `The database ${path}`, why }, { cause })

/**
 * An exclusive lock on a file of its own, `<path>.lock`, which the operating system frees however
 * the process ends.
 */
export function lock(path: string): DatabaseSync {
  const held = new DatabaseSync(`${path}.lock`, { timeout: 0 })
  try {
    // Nothing is written to the lock file, so its journal stays in memory, where nobody can read
    // it.
    held.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    chmodSync(`${path}.lock`, 0o600)
    return held
  } catch (error) {
    held.close()
    throw unavailable(
      path,
      'another server has it open. One server serves one data folder; the command line ' +
        'talks to the running one',
      error,
    )
  }
}

const pragma = (raw: DatabaseSync, name: string): unknown =>
  Object.values(raw.prepare(`PRAGMA ${name}`).get() ?? {})[0]

function configure(raw: DatabaseSync, { path, bytesMax }: Start): void {
  raw.exec(
    'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA cache_size = -8192; ' +
      'PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF',
  )
  raw.exec('PRAGMA wal_autocheckpoint = 4000; PRAGMA journal_size_limit = 67108864')
  if (bytesMax > 0) raw.exec(`PRAGMA max_page_count = ${Math.ceil(bytesMax / pageBytes)}`)
  checkDurable(raw, path)
}

/**
 * Checks the pragmas, because not every build or file system grants them. Without these two an
 * acknowledged write could be lost.
 */
export function checkDurable(raw: DatabaseSync, path: string): void {
  if (pragma(raw, 'journal_mode') !== 'wal')
    throw unavailable(path, 'its file system does not support a write-ahead log')
  if (pragma(raw, 'synchronous') !== 2)
    throw unavailable(path, 'it does not grant full synchronisation')
}

function adopt(raw: DatabaseSync, path: string): void {
  const version = Number(pragma(raw, 'user_version'))
  const owner = Number(pragma(raw, 'application_id'))
  const empty = Number(pragma(raw, 'schema_version')) === 0
  if (!empty && owner !== applicationId) throw unavailable(path, 'it belongs to another program')
  if (version > formatVersion)
    throw unavailable(
      path,
      `its format is ${version} and this program knows formats up to ${formatVersion}. ` +
        'Start the newer program, or restore a backup',
    )
  if (!empty) return
  const segment =
    'stream TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, body TEXT NOT NULL'
  raw.exec(`BEGIN IMMEDIATE;
    PRAGMA application_id = ${applicationId}; PRAGMA user_version = ${formatVersion};
    CREATE TABLE collections (name TEXT PRIMARY KEY, spec TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE segments (${segment}, PRIMARY KEY (stream, last));
    CREATE TABLE trims (stream TEXT PRIMARY KEY, through INTEGER NOT NULL) WITHOUT ROWID; COMMIT`)
}

function prepared(statement: StatementSync): Statement {
  statement.setReturnArrays(true)
  return {
    run: (...values) => Number(statement.run(...values).changes),
    get: (...values) => statement.get(...values) as Row | undefined,
    all: (...values) => statement.all(...values) as unknown as Row[],
  }
}

export function openDatabase(start: Start): Database {
  const { path } = start
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const held = lock(path)
  let raw: DatabaseSync | undefined
  try {
    raw = new DatabaseSync(path, { timeout: 5000 })
    // The log and its index take the mode of the file they belong to.
    chmodSync(path, 0o600)
    configure(raw, start)
    adopt(raw, path)
  } catch (error) {
    raw?.close()
    held.close()
    throw error instanceof Error && 'status' in error
      ? error
      : unavailable(path, (error as Error).message, error)
  }
  const [opened, statements] = [raw, createLru<string, Statement>(statementsMax)]
  return {
    raw: opened,
    exec: sql => opened.exec(sql),
    prepare(sql) {
      const known = statements.get(sql)
      if (known) return known
      const made = prepared(opened.prepare(sql))
      statements.set(sql, made)
      return made
    },
    close() {
      opened.close()
      held.close()
    },
  }
}
