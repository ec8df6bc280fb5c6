// What gives a copy enough to do that it can be cut off in the middle: written beneath a server
// that has stopped.
import eventlogAdapter from '#adapters/eventlog/sqlite.ts'
import storageAdapter from '#adapters/storage/sqlite.ts'
import { systemClock } from '#adapters/clock/system.ts'
import { collection } from '#ports/storage.ts'
import { opening } from '../../conformance/opening.ts'

/** Of no plugin that this program has. */
export const Ballast = collection<{
  id: string
  n: number
  text: string
  until?: number
  deep: unknown
}>({
  name: 'ballast',
  scope: 'platform',
  unique: [['n']],
  index: [['text', 'n']],
  expires: 'until',
})

export async function sqliteDocs(path: string, count: number): Promise<void> {
  const clock = systemClock()
  const url = `sqlite://${path}`
  const storage = await storageAdapter.open(opening(url, { clock }))
  const log = await eventlogAdapter.open(opening(url, { clock, engine: <T>() => storage as T }))
  await storage.define(Ballast)
  for (let at = 0; at < count; at += 500)
    await storage.insertMany(
      Ballast,
      Array.from({ length: Math.min(500, count - at) }, (_, n) => ({
        id: `b${String(at + n).padStart(7, '0')}`,
        n: at + n,
        text: `é🦊 ${'x'.repeat(300)}`,
        ...(n % 5 === 0 ? { until: clock.now() + 86_400_000 } : {}),
        deep: { z: [null, 1.5, -0.25], 'a.b': { $set: true }, '': '' },
      })),
    )
  const all = Array.from({ length: Math.ceil(count / 10) }, (_, n) => `ballast/${n}`)
  await Promise.all(
    all.map((stream, n) =>
      log.append(
        stream,
        Array.from({ length: 1 + (n % 40) }, (_, at) => ({
          type: 'x',
          data: { at, text: 'y'.repeat(100) },
          ...(at % 3 === 0 ? { hidden: true as const } : {}),
        })),
      ),
    ),
  )
  // Forgotten to the end; forgotten into a stretch that was told in fewer events; one event as
  // large as there can be.
  await log.trim('ballast/0', 1)
  await log.append(
    'ballast/odd',
    Array.from({ length: 60 }, (_, at) => ({ type: 'x', data: at })),
  )
  await log.rewrite('ballast/odd', { from: 10, through: 50 }, [
    { seq: 30, type: 'y', data: 1 },
    { seq: 50, type: 'y', data: 2 },
  ])
  await log.trim('ballast/odd', 35)
  await log.append('ballast/odd', [
    { type: 'z', data: 'z'.repeat(log.limits.appendBytesMax - 100) },
  ])
  await storage.durable()
  await log.close()
  await storage.close()
}
