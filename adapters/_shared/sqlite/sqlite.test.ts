// Cases that only a database in a file has.
import { spawn } from 'node:child_process'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import { collection, type StorageEngine, type Where } from '#ports/storage.ts'
import { refuses } from '../../../test/conformance/runner.ts'
import { sqlitePlace } from '../../../test/support/databases/sqlite.ts'
import { systemClock } from '../../clock/system.ts'
import { checkDurable, openDatabase } from './database.ts'
import { sharedWriter } from './sharing.ts'
import { openTable } from './tables.ts'
import { conditions } from './where.ts'

const things = collection<{ id: string; pad?: string; n?: number }>({
  name: 'things',
  scope: 'platform',
  index: [['n']],
})
const child = fileURLToPath(
  new URL('../../../test/support/children/sqlite-child.ts', import.meta.url),
)
const pad = 'x'.repeat(2000)
const turn = () => new Promise(resolve => setImmediate(resolve))

const withPlace = (
  title: string,
  run: (place: Awaited<ReturnType<typeof sqlitePlace>>) => Promise<void>,
) =>
  test(title, async () => {
    const place = await sqlitePlace(systemClock())
    try {
      await run(place)
    } finally {
      await place.clean()
    }
  })
async function sound(path: string): Promise<void> {
  const raw = new DatabaseSync(path, { readOnly: true })
  assert.equal({ ...raw.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' })
  raw.close()
}
async function opened(
  place: Awaited<ReturnType<typeof sqlitePlace>>,
  parameters = '',
): Promise<StorageEngine> {
  const engine = await place.open(parameters)
  await engine.define(things)
  return engine
}

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

withPlace(
  'kill -9 in mid-write keeps every write whose durable() resolved, and frees the lock',
  async place => {
    const writing = spawn(process.execPath, [child, place.path], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const said: string[] = []
    const exited = new Promise(resolve => writing.once('exit', resolve))
    for await (const line of createInterface(writing.stdout)) {
      said.push(line)
      if (said.length === 1)
        assert.match(await refuses('UNAVAILABLE', () => place.open()), /another server has it open/)
      if (said.length > 400) writing.kill('SIGKILL')
    }
    await exited
    assert.is(writing.signalCode, 'SIGKILL')
    const engine = await opened(place)
    for (const id of said.slice(1)) assert.ok(await engine.get(things, id), id)
    await engine.close()
    await sound(place.path)
  },
)

withPlace('a second opener of the file is refused, until the first has closed', async place => {
  const first = await place.open()
  await refuses('UNAVAILABLE', () => place.open())
  await first.close()
  await (await place.open()).close()
})

withPlace(
  'a file of a newer program, of another program, or of nothing known is refused and left alone',
  async place => {
    await (await place.open()).close()
    const raw = new DatabaseSync(place.path)
    raw.exec('PRAGMA user_version = 99')
    raw.close()
    assert.match(await refuses('UNAVAILABLE', () => place.open()), /format is 99 .* up to 1/)
    const foreign = join(place.folder, 'foreign.db')
    const other = new DatabaseSync(foreign)
    other.exec('CREATE TABLE t (x)')
    other.close()
    assert.match(await refuses('UNAVAILABLE', () => place.open('', foreign)), /another program/)
    const diary = join(place.folder, 'diary.txt')
    await writeFile(diary, 'dear diary\n'.repeat(100))
    await refuses('UNAVAILABLE', () => place.open('', diary))
    assert.is(await readFile(diary, 'utf8'), 'dear diary\n'.repeat(100))
  },
)

test('anything but a write-ahead log with full synchronisation is refused', () => {
  const raw = new DatabaseSync(':memory:')
  assert.throws(() => checkDurable(raw, 'x'), /write-ahead/)
  const lax = {
    prepare: (sql: string) => ({ get: () => ({ value: sql.includes('journal') ? 'wal' : 1 }) }),
  }
  assert.throws(() => checkDurable(lax as never, 'x'), /full synchronisation/)
  raw.close()
})

withPlace('only the owner may look into the folder and its files', async place => {
  const engine = await opened(place)
  await engine.insert(things, { id: 'a' })
  await engine.durable()
  const mode = async (path: string) => (await stat(path)).mode & 0o777
  assert.is(await mode(join(place.path, '..')), 0o700)
  for (const end of ['', '-wal', '-shm', '.lock'])
    assert.is(await mode(`${place.path}${end}`), 0o600, end)
  await engine.close()
})

withPlace(
  'a full disk: refused as such, what was on disk stays, and all goes on when there is room again',
  async place => {
    const engine = await opened(place, '?bytes_max=400000')
    const epoch = engine.epoch!()
    const kept: string[] = []
    let failure: unknown
    for (let n = 0; failure === undefined && n < 1000; n++) {
      try {
        await engine.insert(things, { id: `t${n}`, pad })
        await engine.durable()
        kept.push(`t${n}`)
      } catch (error) {
        failure = error
      }
    }
    assert.ok(hasCode(failure, 'STORAGE_FULL'), String(failure))
    assert.ok(kept.length > 50)
    assert.is(await engine.count(things), kept.length)
    await engine.remove(things, kept.pop()!)
    await engine.durable()
    await engine.insert(things, { id: 'fits' })
    await engine.remove(things, 'fits')
    await engine.durable()
    // The write is applied, then lost with its transaction, which the next write overfills. Waiters
    // are told. Many counts keep the thread busy, so `after` is sent before the loss is known.
    const busy = Promise.all(Array.from({ length: 300 }, () => engine.count(things, { pad: 'y' })))
    const small = engine.insert(things, { id: 'small' })
    const large = engine.insertMany(
      things,
      Array.from({ length: 50 }, (_, n) => ({ id: `l${n}`, pad })),
    )
    const durable = engine.durable()
    await turn()
    const after = engine.insert(things, { id: 'after' })
    await busy
    const outcomes = await Promise.allSettled([small, large, durable, after])
    assert.equal(
      outcomes.map(
        one =>
          one.status === 'rejected' &&
          (one.reason as Error).message.replace(/.*(lost|full).*/, '$1'),
      ),
      ['full', 'full', 'lost', 'lost'],
    )
    assert.is.not(engine.epoch!(), epoch)
    assert.is(await engine.get(things, 'small'), undefined)
    await engine.durable()
    await sharedWriter(engine)!.write(['quota', 1_000_000], () => undefined)
    await engine.insert(things, { id: 'small' })
    await engine.insertMany(
      things,
      Array.from({ length: 50 }, (_, n) => ({ id: `l${n}`, pad })),
    )
    await engine.durable()
    assert.is(await engine.count(things), kept.length + 51)
    await engine.close()
    await sound(place.path)
  },
)

withPlace(
  'a loss drops what was remembered of streams and of tables made in the lost transaction',
  async place => {
    const engine = await opened(place)
    const log = await place.openLog(engine)
    const writer = sharedWriter(engine)!
    await log.append('a', [{ type: 'x', data: 1 }])
    await engine.durable()
    await log.append('a', [{ type: 'x', data: 2 }])
    const young = collection({ name: 'young', scope: 'platform' })
    await engine.define(young)
    await writer.write(['quota', 1], () => undefined)
    const lost = await Promise.allSettled([
      log.append('b', [{ type: 'x', data: pad.repeat(200) }]),
      log.durable(),
    ])
    assert.equal(
      lost.map(({ status }) => status),
      ['rejected', 'rejected'],
    )
    await writer.write(['quota', 1_000_000], () => undefined)
    assert.equal(await log.bounds('a'), { first: 1, last: 1 })
    assert.is(await log.append('a', [{ type: 'x', data: 3 }], { expect: 1 }), 2)
    await engine.insert(young, { id: 'a' })
    await engine.durable()
    await engine.close()
    await sound(place.path)
  },
)

withPlace(
  'a commit that fails (no room for the log) is told to whoever waits for it',
  async place => {
    // A limit on file sizes plays a full disk. Its signal is ignored, so that the write itself
    // fails.
    const script = 'trap "" XFSZ; ulimit -f 2000; exec "$0" "$@"'
    const writing = spawn('sh', ['-c', script, process.execPath, child, place.path, '3000'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const said = await Array.fromAsync(createInterface(writing.stdout))
    assert.is(said.at(-1), 'refused true true t0')
    const engine = await opened(place)
    const durable = said.slice(1, -1)
    assert.ok(durable.length > 50)
    for (const id of durable) assert.ok(await engine.get(things, id), id)
    await engine.close()
    await sound(place.path)
  },
)

withPlace('a backup is a consistent copy while writing goes on', async place => {
  const engine = await opened(place)
  let [count, writing] = [0, true]
  const writer = (async () => {
    while (writing) {
      await Promise.all(
        Array.from({ length: 20 }, () =>
          engine.insert(things, { id: `t${count}`, n: count++, pad }),
        ),
      )
      await sleep(1)
    }
  })()
  await sleep(50)
  const before = count - 20
  const copy = join(place.folder, 'copy.db')
  await engine.backup!(copy)
  const after = count
  writing = false
  await writer
  await engine.close()
  await sound(copy)
  assert.is((await stat(copy)).mode & 0o777, 0o600)
  const restored = await place.open('', copy)
  await restored.define(things)
  const found = await restored.count(things)
  assert.ok(found >= before && found <= after + 20, `${before} ${found} ${after}`)
  // The backup is a prefix of what was written: nothing before its last document is missing.
  assert.is(await restored.count(things, { n: { lt: found } }), found)
  await restored.insert(things, { id: 'more' })
  await restored.close()
  await refuses('UNAVAILABLE', () => engine.backup!(copy))
})

test.run()
