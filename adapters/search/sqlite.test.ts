import { existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import { index, ownOrg, plain } from '../../test/conformance/search/common.ts'
import { searchKit } from '../../test/conformance/search.ts'
import { sqliteSearch } from './sqlite.ts'

const folder = () => mkdtempSync(join(tmpdir(), 'agent-platform-search-'))
searchKit(test, 'sqlite', {
  survives: true,
  lacks: { another: 'one process at a time has it open' },
  place: async () => {
    const at = folder()
    return {
      open: async () => sqliteSearch({ path: join(at, 'search.db') }),
      clean: async () => rmSync(at, { recursive: true }),
    }
  },
})

test('sqlite: only a search makes the file and the thread; a health check does not', async () => {
  const at = folder()
  const path = join(at, 'search.db')
  const engine = sqliteSearch({ path })
  await engine.ping()
  await engine.backup!(join(at, 'copy.db'))
  assert.equal(await engine.addresses({ limit: 1 }), [])
  assert.equal(
    [existsSync(path), existsSync(`${path}.lock`), existsSync(join(at, 'copy.db'))],
    [false, false, false],
  )
  await engine.within(ownOrg).collections()
  assert.is(statSync(path).mode & 0o777, 0o600)
  await engine.close()
  rmSync(at, { recursive: true })
})

test('sqlite: a second server on the file and a foreign file are refused by name', async () => {
  const at = folder()
  const path = join(at, 'search.db')
  const engine = sqliteSearch({ path })
  const second = sqliteSearch({ path })
  await engine.within(ownOrg).collections()
  const refused = async (other: typeof second) =>
    other
      .within(ownOrg)
      .collections()
      .then(
        () => 'it was opened',
        (error: Error) => (assert.ok(hasCode(error, 'UNAVAILABLE')), error.message),
      )
  assert.match(await refused(second), /another server has it open/)
  await engine.close()
  assert.equal(await second.within(ownOrg).collections(), [], 'tried again, it opens')
  await second.close()
  const foreign = new DatabaseSync(join(at, 'foreign.db'))
  foreign.exec('CREATE TABLE theirs (x)')
  foreign.close()
  const third = sqliteSearch({ path: join(at, 'foreign.db') })
  assert.match(await refused(third), /belongs to another program/)
  await third.close()
  rmSync(at, { recursive: true })
})

test('sqlite: a full quota refuses with STORAGE_FULL; a copy made meanwhile is whole', async () => {
  const at = folder()
  const engine = sqliteSearch({ path: join(at, 'search.db'), bytesMax: 1_000_000 })
  const passages = engine.within(ownOrg)
  await passages.define('c', plain)
  await index(passages, 'c', [{ id: 'small', text: 'needle' }])
  const error = await passages
    .index(
      'c',
      Array.from({ length: 100 }, (_, n) => ({
        id: `${n}`,
        text: `${n} needle words `.repeat(1000),
      })),
    )
    .then(
      () => undefined,
      (reason: unknown) => reason,
    )
  assert.ok(hasCode(error, 'STORAGE_FULL'))
  assert.is(await passages.count('c'), 1)
  await index(passages, 'c', [{ id: 'other', text: 'needle' }])
  await engine.backup!(join(at, 'copy.db'))
  await engine.close()
  const copy = sqliteSearch({ path: join(at, 'copy.db') })
  assert.is((await copy.within(ownOrg).query('c', { text: 'needle' })).hits.length, 2)
  await copy.close()
  rmSync(at, { recursive: true })
})

test('sqlite: of words that are common every one must be held', async () => {
  const at = folder()
  const engine = sqliteSearch({ path: join(at, 'search.db') })
  const passages = engine.within(ownOrg)
  const id = (n: number) => String(n).padStart(5, '0')
  await passages.define('c', plain)
  const fill = async (from: number, count: number, textOf: (n: number) => string) =>
    index(
      passages,
      'c',
      Array.from({ length: count }, (_, n) => ({ id: id(from + n), text: textOf(n) })),
    )
  for (let from = 0; from < 6000; from += 1000) await fill(from, 1000, () => 'left right')
  await fill(10_000, 900, n => (n % 2 ? 'left' : 'right'))
  await index(
    passages,
    'c',
    [10_700, 10_002].map(n => ({ id: id(n), text: 'right and left' })),
  )
  const ours = { id: { prefix: '10' } }
  const idsOfMatch = async (more: object) =>
    (await passages.match('c', { text: 'left right', where: ours, limit: 100, ...more })).hits.map(
      hit => hit.id,
    )
  assert.equal(await idsOfMatch({}), ['10700', '10002'])
  assert.equal(await idsOfMatch({ before: '10700' }), ['10002'])
  assert.equal(await idsOfMatch({ limit: 1 }), ['10700'])
  assert.is((await passages.match('c', { text: 'left right', limit: 100 })).more, true)
  await engine.close()
  rmSync(at, { recursive: true })
})

test.run()
