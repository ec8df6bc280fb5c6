// No query of the platform without an index, by MongoDB's documented rules.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { manualClock } from '#adapters/clock/manual.ts'
import { all, behind, conditions } from '#adapters/_shared/mongodb/filters.ts'
import { indexesOf, sortOf } from '#adapters/storage/mongodb/index-definitions.ts'
import { memoryStorage } from '#adapters/storage/memory.ts'
import type { Collection, Query, StorageEngine, Where } from '#ports/storage.ts'
import { serves, type IndexSpec } from '../support/databases/index-rules.ts'
import { endServers, readEvents, startServer } from '../conformance/plugin/server.ts'

type Shape = {
  readonly collection: Collection
  readonly where: Where
  readonly orderBy: readonly [string, 'asc' | 'desc'] | undefined
}
const byId: IndexSpec = { name: '_id_', key: { _id: 1 } }

/** A storage that writes down what it is asked for. */
function recording(engine: StorageEngine, shapes: Map<string, Shape>): StorageEngine {
  const defined = new Map<string, Collection>()
  const note = ({ name }: Collection, where: Where = {}, orderBy?: Shape['orderBy']) => {
    const kinds = Object.entries(where).map(
      ([field, value]) =>
        `${field}:${typeof value === 'object' ? Object.keys(value).join('+') : 'is'}`,
    )
    shapes.set(
      `${name} where ` +
        `${kinds.sort().join(' ') || 'all'}${orderBy ? ` by ${orderBy.join(' ')}` : ''}`,
      { collection: defined.get(name)!, where, orderBy },
    )
  }
  return {
    ...engine,
    define: c => (defined.set(c.name, c), engine.define(c)),
    find: (c, query: Query = {}) => (
      note(c, query.where, query.orderBy ?? ['id', 'asc']), engine.find(c, query)
    ),
    count: (c, where) => (note(c, where), engine.count(c, where)),
    updateMany: (c, where, change) => (
      note(c, where, ['id', 'asc']), engine.updateMany(c, where, change)
    ),
    removeMany: (c, where) => (note(c, where), engine.removeMany(c, where)),
  }
}
const isServed = ({ collection, where, orderBy }: Shape): boolean => {
  const [field, direction] = orderBy ?? ['id', 'asc']
  const filter = all([
    ...conditions(where),
    ...(orderBy ? behind(field, direction, undefined) : []),
  ])
  const sort = orderBy ? sortOf(collection, where, orderBy) : {}
  return [byId, ...indexesOf(collection)].some(index => serves(index, filter, sort))
}

test('the rules: a prefix, an order, a partial index only if its condition is repeated', () => {
  const plain = { name: 'i', key: { a: 1, b: 1, _id: 1 } }
  const text = { $type: ['string'] }
  const partial = { name: 'u', key: { a: 1 }, partialFilterExpression: { a: text } }
  assert.ok(serves(plain, { $and: [{ a: { $eq: 1 } }] }, { b: 1, _id: 1 }))
  assert.ok(serves(plain, { $and: [{ a: { $eq: 1 } }, { b: { $eq: 1 } }] }, { _id: 1 }))
  assert.not.ok(serves(plain, { $and: [{ a: { $eq: 1 } }] }, { _id: 1 }), 'a sort in memory')
  assert.not.ok(serves(plain, { $and: [{ b: { $eq: 1 } }] }, {}), 'no prefix')
  assert.not.ok(serves(partial, { $and: [{ a: { $eq: 'x' } }] }, {}), 'equality implies no type')
  assert.ok(serves(partial, { $and: [{ a: { $eq: 'x', ...text } }] }, {}))
})
test("a look-up by a unique key of the platform may use that key's index", async () => {
  const defined: Collection[] = []
  const engine = memoryStorage(manualClock())
  const storage = {
    ...engine,
    define: (c: Collection) => (defined.push(c), engine.define(c)),
  } as StorageEngine
  const server = await startServer({ given: { storage } })
  for (const collection of defined) {
    for (const index of indexesOf(collection).filter(({ unique }) => unique)) {
      const filter = all(
        conditions(
          Object.fromEntries(
            Object.keys(index.key).map(field => [field === '_id' ? 'id' : field, 'x']),
          ),
        ),
      )
      assert.ok(serves(index, filter, {}), `${collection.name} ${index.name}`)
    }
  }
  assert.ok(defined.length > 10)
  await server.stop()
})
test('every query that the API and its background work make is served by an index', async () => {
  const shapes = new Map<string, Shape>()
  const clock = manualClock()
  const server = await startServer({
    given: { clock, storage: recording(memoryStorage(clock), shapes) },
    env: { RUNS_RETENTION_MS: '1000' },
  })
  const { token } = await server.account()
  const call = (method: string, path: string, body?: unknown) =>
    server.call(method, path, { token, body })
  const { run_id, session_id } = (
    await call('POST', '/chat', { message: 'hello', idempotency_key: 'k' })
  ).body as { run_id: string; session_id: string }
  await readEvents(await server.stream(token, run_id))
  await call('POST', '/chat', { message: 'again', session_id, idempotency_key: 'k2' })
  for (const path of [
    '/sessions',
    '/sessions/search?q=hello',
    '/api-keys',
    '/balance',
    `/sessions/${session_id}`,
    `/sessions/${session_id}/messages`,
    `/sessions/${session_id}/artifacts`,
    `/sessions/${session_id}/queue`,
  ])
    await call('GET', path)
  await call('POST', '/artifacts', {
    filename: 'a.txt',
    content_base64: 'aGVsbG8=',
    mime: 'text/plain',
  })
  await call('POST', '/uploads', {
    filename: 'a.txt',
    content_base64: 'aGVsbG8=',
    mime: 'text/plain',
    session_id,
  })
  await call('POST', `/sessions/${session_id}/branch`, {})
  for (let minutes = 0; minutes < 5; minutes++) await clock.leap(60_000)
  await call('DELETE', `/sessions/${session_id}`)
  await clock.leap(60_000)
  const unserved = [...shapes]
    .filter(([, shape]) => !isServed(shape))
    .map(([name]) => name)
    .sort()
  assert.ok(shapes.size > 20, `${shapes.size} shapes`)
  assert.equal(unserved, [])
  await server.stop()
})
test.after(endServers)
test.run()
