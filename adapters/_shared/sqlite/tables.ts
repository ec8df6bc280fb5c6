// A collection as a table: `id`, the document, and a column for each field that an index needs.
import type { Collection } from '#ports/storage.ts'
import { indexedFields } from '../documents.ts'
import type { Database, Statement } from './database.ts'
import { extracted, type HasColumn } from './where.ts'

export type Table = {
  readonly name: string
  /** Quoted, for statements. */
  readonly sql: string
  readonly expires: string | undefined
  /** Fields that have a column, in the order in which values are bound. */
  readonly fields: readonly string[]
  readonly has: HasColumn
  readonly insert: Statement
  readonly get: Statement
  readonly removeRow: Statement
  /** Sets the document and these columns: their values, then the row's, are bound. */
  updateRow(columns: readonly string[]): Statement
}

/**
 * Each index ends with `id`, so that a page in its order needs no sort. An index of one field
 * leaves out documents without the field. Queries that compare or sort by the field do not want
 * them.
 */
function indexes({
  name,
  unique = [],
  index = [],
  scope,
  expires,
}: Collection): Map<string, string> {
  const columns = (fields: readonly string[]) =>
    fields.map(field => (field === 'id' ? 'id' : `"f_${field}"`)).join(', ')
  const made = new Map<string, string>()
  for (const fields of unique)
    made.set(
      `u_${name}_${fields.join('_')}`,
      `UNIQUE INDEX "u_${name}_${fields.join('_')}" ON "c_${name}" (${columns(fields)})`,
    )
  const others = [...index, ...(expires === undefined ? [] : [[expires]])]
  // Without an index that starts with the organisation, listing its documents would read all
  // organisations.
  if (scope === 'tenant' && ![...unique, ...others].some(fields => fields[0] === 'orgId'))
    others.push(['orgId'])
  for (const fields of others) {
    const some =
      fields.length === 1 && fields[0] !== 'id' ? ` WHERE ${columns(fields)} IS NOT NULL` : ''
    made.set(
      `i_${name}_${fields.join('_')}`,
      `INDEX "i_${name}_${fields.join('_')}" ON "c_${name}" ` +
        `(${columns([...new Set([...fields, 'id'])])})${some}`,
    )
  }
  return made
}

/**
 * Defines the table. Refills columns that an earlier program did not declare, and so did not
 * update.
 */
function defineTable(db: Database, spec: Collection): void {
  const table = `"c_${spec.name}"`
  const stored = db.prepare('SELECT spec FROM collections WHERE name = ?').get(spec.name)?.[0]
  const next = JSON.stringify(spec)
  if (stored === next) return
  db.exec(`CREATE TABLE IF NOT EXISTS ${table} (id TEXT PRIMARY KEY NOT NULL, doc TEXT NOT NULL)`)
  const wanted = indexes(spec)
  const present = db
    .prepare(
      `SELECT name FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND sql IS NOT NULL`,
    )
    .all(`c_${spec.name}`)
    .map(([name]) => String(name))
  for (const name of present) if (!wanted.has(name)) db.exec(`DROP INDEX "${name}"`)
  const columns = new Set(
    db.raw
      .prepare(`SELECT name FROM pragma_table_info('c_${spec.name}')`)
      .all()
      .map(row => row['name']),
  )
  const kept = new Set(
    typeof stored === 'string' ? indexedFields(JSON.parse(stored) as Collection) : [],
  )
  for (const field of indexedFields(spec).filter(candidate => !kept.has(candidate))) {
    if (!columns.has(`f_${field}`)) db.exec(`ALTER TABLE ${table} ADD COLUMN "f_${field}"`)
    db.exec(`UPDATE ${table} SET "f_${field}" = ${extracted(field)}`)
  }
  for (const [name, sql] of wanted) if (!present.includes(name)) db.exec(`CREATE ${sql}`)
  db.prepare(
    'INSERT INTO collections VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET spec = excluded.spec',
  ).run(spec.name, next)
}

/** Makes the table match the collection's declaration; all or nothing. */
export function openTable(db: Database, spec: Collection): Table {
  db.exec('SAVEPOINT define')
  try {
    defineTable(db, spec)
    db.exec('RELEASE define')
  } catch (error) {
    if (db.raw.isTransaction) db.exec('ROLLBACK TO define; RELEASE define')
    throw error
  }
  const fields = indexedFields(spec)
  const [sql, known] = [`"c_${spec.name}"`, new Set(fields)]
  const columns = ['id', 'doc', ...fields.map(field => `"f_${field}"`)]
  const updates = new Map<string, Statement>()
  return {
    name: spec.name,
    sql,
    expires: spec.expires,
    fields,
    has: field => known.has(field),
    insert: db.prepare(
      `INSERT INTO ${sql} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
    ),
    get: db.prepare(`SELECT rowid, doc FROM ${sql} WHERE id = ?`),
    removeRow: db.prepare(`DELETE FROM ${sql} WHERE rowid = ?`),
    updateRow(changed) {
      const key = changed.join()
      const before = updates.get(key)
      if (before) return before
      const sets = changed.map(field => `, "f_${field}" = ?`).join('')
      const made = db.prepare(`UPDATE ${sql} SET doc = ?${sets} WHERE rowid = ?`)
      updates.set(key, made)
      return made
    },
  }
}
