// Who may open a file, which file is opened, and its copy.
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { refuses } from '../../../test/conformance/runner.ts'
import { onPlace, opened, pad, sound, things } from '../../../test/support/databases/sqlite-file.ts'
import { checkDurable } from './database.ts'

const withPlace = onPlace(test)

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
