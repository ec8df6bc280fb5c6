// The kit against the server that MONGODB_URL names, and what two processes on one server see of each other.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import { events, followTo, seqs } from '../../test/kit/eventlog-common.ts'
import { eventlogKit } from '../../test/kit/eventlog.ts'
import { freshDatabase, mongoUrl } from '../../test/kit/mongodb.ts'
import { until } from '../../test/kit/queue-common.ts'
import { startStandalone, type Standalone } from '../../test/kit/standalone.ts'
import { manualClock } from '../clock/manual.ts'
import { systemClock } from '../clock/system.ts'
import { lookedAtOnce } from '../_shared/mongodb/watch.ts'
import { mongoEventlog } from './mongodb.ts'

const engineOf = async ({ connect }: ReturnType<typeof freshDatabase>, clock: Clock = systemClock(), log: Log = () => undefined) => mongoEventlog({ connection: await connect(), clock, log })

if (mongoUrl === undefined) test.skip('mongodb: the kit (MONGODB_URL is not set)', () => undefined)
else {
  let alone: Standalone
  const mongo = () => mongoUrl!, lone = () => alone.url
  test.before(async () => { alone = await startStandalone(mongoUrl!) })
  test.after(() => alone.close())
  // A server that is no replica set has no change streams: whoever follows what another process appends looks again and again.
  for (const [name, server] of [['mongodb', mongo], ['mongodb that is no replica set', lone]] as const) eventlogKit(test, name, {
    survives: true,
    place: async () => {
      const database = freshDatabase(server())
      return {
        clean: database.clean,
        async open() {
          const log = await engineOf(database)
          return { log, close: () => log.close() }
        },
      }
    },
  })

  const two = (title: string, run: (one: Awaited<ReturnType<typeof engineOf>>, other: Awaited<ReturnType<typeof engineOf>>) => Promise<void>, server = mongo) => test(`mongodb: ${title}`, async () => {
    const database = freshDatabase(server()), engines = [await engineOf(database), await engineOf(database)] as const
    try {
      await run(...engines)
    } finally {
      for (const engine of engines) await engine.close()
      await database.clean()
    }
  })
  for (const [where, server] of [['', mongo], [' where there is no change stream', lone]] as const) two(`what one process appends, another follows${where}: each event once, in order, whenever the follower began`, async (one, other) => {
    const before = alone.asked(), following = [followTo(other, 'a', 300), followTo(other, 'a', 300, 17)]
    for (let n = 0; n < 30; n++) {
      await one.append('a', events(10, n * 10))
      if (n === 15) following.push(followTo(other, 'a', 300))
    }
    const [whole, rest, late] = await Promise.all(following)
    const all = Array.from({ length: 300 }, (_, n) => n + 1)
    assert.equal([seqs(whole!), seqs(rest!), seqs(late!)], [all, all.slice(17), all])
    assert.is(alone.asked() > before, server === lone)
  }, server)
  test('mongodb that is no replica set: it is told once, nothing is asked where nobody follows, of very many followers a part is at each look, and a set that it becomes is noticed', async () => {
    const server = await startStandalone(mongo()), database = freshDatabase(server.url), clock = manualClock(), said: string[] = [], engine = await engineOf(database, clock, (_, event) => said.push(event)), other = await engineOf(database), stop = new AbortController()
    const reads = () => server.counts()['find'] ?? 0, followers = lookedAtOnce + 50, seen: number[] = []
    /** How often the server was asked while so much time went by. */
    const asked = async (ms: number) => {
      const before = [reads(), server.asked()] as const
      await clock.advance(ms)
      for (let last = -1; last !== reads();) {
        last = reads()
        await new Promise(resolve => setTimeout(resolve, 50))
      }
      return [reads() - before[0], server.asked() - before[1]]
    }
    try {
      const first = new AbortController()
      const left = engine.follow('a', { signal: first.signal })[Symbol.asyncIterator]().next()
      await until(() => clock.sleeping() > 0, 'the first look')
      first.abort()
      await left
      assert.equal(await asked(10_000), [0, 0])
      const following = Promise.all(Array.from({ length: followers }, async (_, n) => {
        for await (const batch of engine.follow(`s${n}`, { signal: stop.signal })) seen.push(...seqs(batch))
      }))
      await asked(0)
      // Two calls a follower: the head of its stream, and what lies behind.
      assert.equal(await asked(500), [2 * lookedAtOnce, 0])
      await other.append(`s${followers - 1}`, events(1))
      await other.append('s0', events(1))
      for (let n = 0; n < 2; n++) await asked(500)
      assert.equal(seen, [1, 1])
      assert.equal([await asked(60_000).then(([, streams]) => streams), said], [1, ['mongodb.no_replica_set']])
      server.join()
      await asked(60_000)
      await other.append('s7', events(1))
      await until(() => seen.length === 3, 'the event by a change stream')
      stop.abort()
      await following
    } finally {
      stop.abort()
      await engine.close()
      await other.close()
      await database.clean()
      await server.close()
    }
  })
  two('of two that append at one place exactly one is refused, however old its knowledge is', async (one, other) => {
    await one.append('a', events(2))
    assert.is(await other.append('a', events(1), { expect: 2 }), 3)
    const refused = await one.append('a', events(1), { expect: 2 }).then(() => undefined, (error: unknown) => error)
    assert.ok(hasCode(refused, 'STREAM_MOVED') && refused.values['head'] === 3)
    await other.append('b', events(1))
    await one.append('b', events(1), { expect: 1 })
    await other.append('b', events(3))
    // What `one` knows of the stream is old, and both of these are right by the time that they are written.
    assert.equal(await Promise.all([one.append('b', events(1)), one.append('b', events(1), { expect: 6 })]), [6, 7])
    const many = await Promise.allSettled(Array.from({ length: 20 }, (_, n) => [one, other][n % 2]!.append('a', events(1 + (n % 3)), { expect: 3 })))
    assert.is(many.filter(({ status }) => status === 'fulfilled').length, 1)
    await Promise.all(Array.from({ length: 40 }, (_, n) => [one, other][n % 2]!.append('a', events(2))))
    const { last } = await one.bounds('a')
    assert.equal(seqs(await other.read('a')), Array.from({ length: last }, (_, n) => n + 1))
  })
  two('a rewrite and a trim by one process are what the other reads; nothing is read twice or left out meanwhile', async (one, other) => {
    for (let n = 0; n < 60; n++) await one.append('a', events(5))
    let going = true
    const reading = (async () => {
      while (going) {
        const found = seqs(await other.read('a', { after: 100 }))
        assert.equal([found[0]! > 100, found.at(-1), found.every((seq, at) => at === 0 || seq > found[at - 1]!)], [true, 300, true])
      }
    })()
    await one.rewrite('a', { from: 1, through: 52 }, [{ seq: 52, type: 'whole', data: null }])
    await one.rewrite('a', { from: 103, through: 290 }, [{ seq: 290, type: 'whole', data: null }])
    await one.trim('a', 60)
    going = false
    await reading
    assert.equal(seqs(await other.read('a')), [...Array.from({ length: 42 }, (_, n) => 61 + n), 290, ...Array.from({ length: 10 }, (_, n) => 291 + n)])
    assert.equal(await other.bounds('a'), { first: 61, last: 300 })
    assert.is(await other.append('a', events(1), { expect: 300 }), 301)
  })
}

test.run()
