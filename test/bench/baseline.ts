// What SQLite itself costs for the writes of one run, with nothing around them: the floor that the
// engine's CPU is held against.
import { DatabaseSync } from 'node:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** At 32 clients about so many runs share one commit: 1,300 runs and 260 commits a second. */
const runsPerCommit = 5

/** The tables, indexes and row sizes of a real installation. */
const document = 'id TEXT PRIMARY KEY NOT NULL, doc TEXT NOT NULL'
const segment =
  'stream TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, body TEXT NOT NULL'
const schema = `PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
  PRAGMA cache_size = -8192; PRAGMA wal_autocheckpoint = 4000;
  CREATE TABLE segments (${segment}, PRIMARY KEY (stream, last));
  CREATE TABLE ledger (${document}, org, seq, key);
  CREATE UNIQUE INDEX ledger_seq ON ledger (org, seq);
  CREATE UNIQUE INDEX ledger_key ON ledger (org, key);
  CREATE TABLE runs (${document}, org, user, idem, session, phase);
  CREATE UNIQUE INDEX runs_idem ON runs (org, user, idem);
  CREATE INDEX runs_session ON runs (org, session, id);
  CREATE INDEX runs_phase ON runs (phase, id);
  CREATE TABLE sessions (${document}, org, user, updated);
  CREATE INDEX sessions_updated ON sessions (org, user, updated, id);`

/** CPU milliseconds a run. */
export function sqliteBaseline(runs = 4000): number {
  const folder = mkdtempSync(join(resolve(import.meta.dirname, '../..'), '.bench-'))
  const database = new DatabaseSync(join(folder, 'floor.db'))
  database.exec(schema)
  const sql = (text: string) => database.prepare(text)
  const [begin, commit, entry, append] = [
    sql('BEGIN IMMEDIATE'),
    sql('COMMIT'),
    sql('INSERT INTO ledger VALUES (?, ?, ?, ?, ?)'),
    sql('INSERT INTO segments VALUES (?, ?, ?, ?)'),
  ]
  const run = {
    insert: sql('INSERT INTO runs VALUES (?, ?, ?, ?, NULL, ?, ?)'),
    read: sql('SELECT doc FROM runs WHERE id = ?'),
    update: sql('UPDATE runs SET doc = ?, phase = ? WHERE id = ?'),
  }
  const session = {
    insert: sql('INSERT INTO sessions VALUES (?, ?, ?, ?, ?)'),
    read: sql('SELECT doc FROM sessions WHERE id = ?'),
    update: sql('UPDATE sessions SET doc = ?, updated = ? WHERE id = ?'),
  }
  const [runDoc, sessionDoc, entryDoc, tokens, small] = [
    'r'.repeat(890),
    's'.repeat(270),
    'e'.repeat(280),
    't'.repeat(1300),
    'm'.repeat(150),
  ]
  const id = (kind: string, i: number) =>
    `01a1fc50-${kind}000-7000-8000-${String(i).padStart(12, '0')}`
  const [org, user] = [id('a', 0), id('b', 0)]
  const before = process.cpuUsage()
  for (let i = 0; i < runs; i++) {
    const [runId, sessionId, stream] = [id('c', i), id('d', i), `${org}/run:${id('c', i)}`]
    if (i % runsPerCommit === 0) begin.run()
    run.insert.run(runId, runDoc, org, user, sessionId, 'admitting')
    entry.run(id('e', i), entryDoc, org, i * 2, `hold:${runId}`)
    session.insert.run(sessionId, sessionDoc, org, user, i)
    for (const phase of ['placed', 'closed']) {
      run.read.get(runId)
      run.update.run(runDoc, phase, runId)
    }
    append.run(stream, 1, 1, small)
    append.run(stream, 2, 24, tokens)
    entry.run(id('f', i), entryDoc, org, i * 2 + 1, `end:${runId}`)
    append.run(stream, 25, 25, small)
    session.read.get(sessionId)
    session.update.run(sessionDoc, i + 1, sessionId)
    if (i % runsPerCommit === runsPerCommit - 1) commit.run()
  }
  const { user: inUser, system } = process.cpuUsage(before)
  database.close()
  rmSync(folder, { recursive: true, force: true })
  return (inUser + system) / 1000 / runs
}
