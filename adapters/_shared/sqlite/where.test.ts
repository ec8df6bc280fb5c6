import type { SQLInputValue } from 'node:sqlite'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { collection, type Where } from '#ports/storage.ts'
import { onPlace } from '../../../test/support/databases/sqlite-file.ts'
import { openDatabase } from './database.ts'
import { openTable } from './tables.ts'
import { conditions } from './where.ts'

const withPlace = onPlace(test)

withPlace(
  'a document that is named by its id is found by it, whatever else is asked of it',
  async place => {
    const db = openDatabase({ path: place.path, bytesMax: 0 })
    const spec = collection<{ id: string; orgId: string; key?: string; due?: number }>({
      name: 'jobs',
      scope: 'tenant',
      unique: [['orgId', 'key']],
      index: [['due'], ['orgId', 'due']],
    })
    const table = openTable(db, spec)
    const planOf = (where: Where, rest = '') => {
      const bound: SQLInputValue[] = []
      const sql =
        `SELECT doc FROM ${table.sql} WHERE ` +
        `${conditions(where, table.has, bound).join(' AND ')}${rest}`
      return db.raw
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all(...bound)
        .map(row => String(row['detail']))
        .join('; ')
    }
    const byId = /SEARCH c_jobs USING INDEX sqlite_autoindex_c_jobs_1 \(id=\?\)/
    assert.match(planOf({ orgId: 'a', id: 'x' }), byId)
    assert.match(planOf({ orgId: 'a', id: { in: ['x', 'y'] } }, ' ORDER BY id'), byId)
    assert.match(planOf({ orgId: 'a', key: 'k', id: { in: ['x', 'y'] } }, ' ORDER BY id'), byId)
    assert.match(planOf({ orgId: 'a', due: { gte: 1, lt: 9 }, id: { in: ['x', 'y'] } }), byId)
    assert.match(
      planOf({ due: { exists: true }, id: { in: ['x', 'y'] } }, ' AND rowid > 0 ORDER BY rowid'),
      byId,
    )
    assert.match(planOf({ orgId: 'a', due: 3 }), /USING INDEX i_jobs_/)
    db.close()
  },
)

test.run()
