// A folder with a database in it, for the tests of what stands on SQLite.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import eventlog from '#adapters/eventlog/sqlite.ts'
import storage from '#adapters/storage/sqlite.ts'
import type { Clock } from '#ports/clock.ts'
import type { EventlogEngine } from '#ports/eventlog.ts'
import type { StorageEngine } from '#ports/storage.ts'
import { opening } from '../../conformance/opening.ts'

export async function sqlitePlace<C extends Clock>(clock: C) {
  const folder = await mkdtemp(join(tmpdir(), 'sqlite-'))
  const path = join(folder, 'data', 'platform.db')
  const engineOf = (engine: unknown) => ({ clock, dataDir: folder, engine: <T>() => engine as T })
  return {
    clock,
    folder,
    path,
    open: (parameters = '', at = path): Promise<StorageEngine> =>
      storage.open(opening(`sqlite:${at}${parameters}`, engineOf(undefined))),
    /** On the storage's thread when it is given, else on one of its own. */
    openLog: (engine?: StorageEngine, at = path): Promise<EventlogEngine> =>
      eventlog.open(opening(`sqlite:${at}`, engineOf(engine))),
    clean: () => rm(folder, { recursive: true, force: true }),
  }
}
