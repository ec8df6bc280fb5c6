// Cases on a database in a file: a place for each, and what they keep in it.
import { DatabaseSync } from 'node:sqlite'
import * as assert from 'uvu/assert'
import { systemClock } from '#adapters/clock/system.ts'
import { collection, type StorageEngine } from '#ports/storage.ts'
import type { Test } from '../../conformance/runner.ts'
import { sqlitePlace } from './sqlite.ts'

type Place = Awaited<ReturnType<typeof sqlitePlace>>

export const things = collection<{ id: string; pad?: string; n?: number }>({
  name: 'things',
  scope: 'platform',
  index: [['n']],
})
export const pad = 'x'.repeat(2000)

/** A case with a folder of its own, which goes with it. */
export const onPlace =
  (test: Test) =>
  (title: string, run: (place: Place) => Promise<void>): void =>
    test(title, async () => {
      const place = await sqlitePlace(systemClock())
      try {
        await run(place)
      } finally {
        await place.clean()
      }
    })
export async function sound(path: string): Promise<void> {
  const raw = new DatabaseSync(path, { readOnly: true })
  assert.equal({ ...raw.prepare('PRAGMA integrity_check').get() }, { integrity_check: 'ok' })
  raw.close()
}
export async function opened(place: Place, parameters = ''): Promise<StorageEngine> {
  const engine = await place.open(parameters)
  await engine.define(things)
  return engine
}
