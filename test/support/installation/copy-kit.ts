// Two installations in memory for the tests of a copy: one that is filled, and one that may die.
import { manualClock } from '#adapters/clock/manual.ts'
import { memoryBlobs } from '#adapters/blobs/memory.ts'
import { memoryEventlog } from '#adapters/eventlog/memory.ts'
import { memorySearch } from '#adapters/search/memory.ts'
import { memoryStorage } from '#adapters/storage/memory.ts'
import { collection } from '#ports/storage.ts'
import { copyAll, type Side } from '../../../plugins/operator/copy/copy.ts'

export type FullSide = Required<Side>
export const orgId = '01890000-0000-7000-8000-00000000000a'
export const clock = manualClock()
export const Notes = collection<{ id: string; n: number; until?: number }>({
  name: 'notes',
  scope: 'platform',
  unique: [['n']],
})
export const Short = collection<{ id: string; until: number }>({
  name: 'short',
  scope: 'platform',
  expires: 'until',
})
export const empty = (): FullSide => ({
  storage: memoryStorage(clock),
  eventlog: memoryEventlog(),
  blobs: memoryBlobs(),
  search: memorySearch(),
})
export const bytesOf = async function* (text: string) {
  yield Buffer.from(text)
}

export async function filled(): Promise<FullSide> {
  const side = empty()
  const { storage, eventlog, blobs, search } = side
  const ours = search.within(orgId)
  const theirs = search.within(`${orgId.slice(0, -1)}b`)
  await storage.define(Notes)
  await storage.define(Short)
  await storage.insertMany(
    Notes,
    Array.from({ length: 330 }, (_, n) => ({ id: `n${1000 + n}`, n })),
  )
  await storage.insertMany(Short, [
    { id: 'a', until: clock.now() + 10 },
    { id: 'b', until: clock.now() + 1e9 },
  ])
  for (let n = 0; n < 12; n++)
    await eventlog.append(
      `s${n}`,
      Array.from({ length: n === 3 ? 450 : n }, (_, at) => ({ type: 'x', data: at })),
    )
  await eventlog.trim('s4', 4)
  await eventlog.trim('s5', 2)
  await eventlog.rewrite('s6', { from: 2, through: 5 }, [{ seq: 5, type: 'y', data: null }])
  await eventlog.trim('s6', 1)
  for (const text of ['', 'a', 'b', 'c'.repeat(200_000)])
    await blobs.within(orgId).put(bytesOf(text))
  await ours.define('empty', {})
  await ours.define('a/b', { languages: ['en', 'fr'], dimensions: 3, fields: { page: 'number' } })
  await theirs.define('a/b', { languages: ['none'] })
  await ours.index(
    'a/b',
    Array.from({ length: 230 }, (_, n) => ({
      id: `p${n}`,
      text: `passage ${n}`,
      ...(n % 2 ? { vector: [1, n, n * n] } : { language: 'fr' as const }),
      fields: { page: n },
    })),
  )
  await theirs.index('a/b', [{ id: 'x', text: 'theirs' }])
  return side
}

/** Dies at the n-th write, half way where a write has parts; counts them otherwise. */
export function dying(
  side: FullSide,
  at = Infinity,
): { readonly side: FullSide; readonly writes: () => number } {
  let writes = 0
  const dead = () => {
    throw new Error('the process is gone')
  }
  const watched = <T extends object>(engine: T, names: readonly string[]): T =>
    new Proxy(engine, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name)
        if (typeof value !== 'function') return value
        return (...asked: unknown[]) => {
          const call = (...args: unknown[]) =>
            (value as (...args: unknown[]) => unknown).apply(target, args)
          if (name === 'within') return watched(call(...asked) as object, names)
          if (writes >= at) return dead()
          if (names.includes(String(name)) && ++writes === at) {
            if (name === 'index')
              return Promise.resolve(call(asked[0], (asked[1] as unknown[]).slice(0, 7))).then(dead)
            if (name === 'insertMany')
              return Promise.resolve(call(asked[0], (asked[1] as unknown[]).slice(0, 7))).then(dead)
            return name === 'restore' ? Promise.resolve(call(...asked)).then(dead) : dead()
          }
          return call(...asked)
        }
      },
    })
  return {
    side: {
      storage: watched(side.storage, ['insert', 'insertMany', 'define', 'remove']),
      eventlog: watched(side.eventlog, ['restore']),
      blobs: watched(side.blobs, ['put']),
      search: watched(side.search, ['define', 'index']),
    },
    writes: () => writes,
  }
}
export const copying = (from: Side, to: Side, tell: (line: string) => void = () => undefined) =>
  copyAll({ from, to, described: 'the source', clock, tell })
