// What SQLite itself costs for the writes of one run, with nothing around them: the floor that the engine's CPU is held against.
import { DatabaseSync } from 'node:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** CPU milliseconds a run; 32 runs share a commit, as they do at 32 clients. */
export function sqliteFloor(runs = 4000): number {
  const folder = mkdtempSync(join(resolve(import.meta.dirname, '../..'), '.bench-')), database = new DatabaseSync(join(folder, 'floor.db'))
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE docs (id TEXT PRIMARY KEY, doc TEXT, a TEXT, b TEXT); CREATE INDEX docs_ab ON docs (a, b); CREATE TABLE log (stream TEXT, last INTEGER, body TEXT, PRIMARY KEY (stream, last)) WITHOUT ROWID')
  const insert = database.prepare('INSERT INTO docs VALUES (?, ?, ?, ?)'), update = database.prepare('UPDATE docs SET doc = ? WHERE id = ?'), append = database.prepare('INSERT INTO log VALUES (?, ?, ?)')
  const run = 'r'.repeat(900), session = 's'.repeat(350), entry = 'e'.repeat(280), tokens = 't'.repeat(1300), small = 'e'.repeat(150)
  const before = process.cpuUsage()
  for (let i = 0; i < runs; i++) {
    if (i % 32 === 0) database.exec('BEGIN IMMEDIATE')
    // A run, its session and two ledger entries; the run placed and closed, the session left; three appends to the log.
    for (const [kind, doc] of [['r', run], ['s', session], ['h', entry], ['c', entry]] as const) insert.run(`${kind}${i}`, doc, 'org', `${kind}${i}`)
    for (const [kind, doc] of [['r', run], ['s', session], ['r', run]] as const) update.run(doc, `${kind}${i}`)
    append.run(`run:${i}`, 1, small)
    append.run(`run:${i}`, 24, tokens)
    append.run(`run:${i}`, 25, small)
    if (i % 32 === 31) database.exec('COMMIT')
  }
  const { user, system } = process.cpuUsage(before)
  database.close()
  rmSync(folder, { recursive: true, force: true })
  return (user + system) / 1000 / runs
}
