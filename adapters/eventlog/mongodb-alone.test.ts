// The kit against a MongoDB that is no replica set, and so has no change streams. Followers of
// another process's appends poll.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import type { Log } from '#ports/adapter.ts'
import type { Clock } from '#ports/clock.ts'
import { events, followedAcross, seqs } from '../../test/conformance/eventlog/common.ts'
import { eventlogKit } from '../../test/conformance/eventlog.ts'
import { freshDatabase, mongoUrl } from '../../test/support/databases/mongodb.ts'
import { startStandalone } from '../../test/support/databases/standalone.ts'
import { manualClock } from '../clock/manual.ts'
import { systemClock } from '../clock/system.ts'
import { lookedAtOnce } from '../_shared/mongodb/watch.ts'
import { mongoEventlog } from './mongodb.ts'

const engineOf = async (
  { connect }: ReturnType<typeof freshDatabase>,
  clock: Clock = systemClock(),
  log: Log = () => undefined,
) => mongoEventlog({ connection: await connect(), clock, log })

if (mongoUrl === undefined)
  test.skip('mongodb that is no replica set (MONGODB_URL is not set)', () => undefined)
else {
  const alone = await startStandalone(mongoUrl)
  test.after(() => alone.close())

  eventlogKit(test, 'mongodb that is no replica set', {
    survives: true,
    place: async () => {
      const database = freshDatabase(alone.url)
      return {
        clean: database.clean,
        async open() {
          const log = await engineOf(database)
          return { log, close: () => log.close() }
        },
      }
    },
  })

  test('mongodb without a replica set: a follower gets each event once and in order', async () => {
    const database = freshDatabase(alone.url)
    const engines = [await engineOf(database), await engineOf(database)] as const
    const [one, other] = engines
    const before = alone.asked()
    try {
      await followedAcross(one, other)
      assert.ok(alone.asked() > before, 'a change stream was asked for, and refused')
    } finally {
      for (const engine of engines) await engine.close()
      await database.clean()
    }
  })

  test('mongodb without a replica set: it warns once, and asks only for followers', async () => {
    const server = await startStandalone(mongoUrl!)
    const database = freshDatabase(server.url)
    const clock = manualClock()
    const said: string[] = []
    const engine = await engineOf(database, clock, (_, event) => said.push(event))
    const other = await engineOf(database)
    const stop = new AbortController()
    const reads = () => server.counts()['find'] ?? 0
    const streamsAsked = () => server.counts()['aggregate'] ?? 0
    const followers = lookedAtOnce + 50
    const seen: number[] = []
    const quiet = () => new Promise(resolve => setTimeout(resolve, 100))
    const reach = async (what: string, holds: () => boolean) => {
      for (let tries = 0; !holds(); tries++) {
        assert.ok(tries < 2000, `in vain: ${what}`)
        await new Promise(resolve => setTimeout(resolve, 10))
      }
    }
    /** Moves the clock on. Meanwhile the server must get exactly `count` calls. */
    const asks = async (ms: number, count: number, before = reads()) => {
      await clock.advance(ms)
      await reach(`${count} calls`, () => reads() >= before + count)
      await quiet()
      assert.is(reads() - before, count)
    }
    try {
      const first = new AbortController()
      const left = engine.follow('a', { signal: first.signal })[Symbol.asyncIterator]().next()
      await reach('the first look', () => clock.sleeping() > 0)
      first.abort()
      await left
      const streams = server.asked()
      await quiet()
      await asks(10_000, 0)
      const before = reads()
      const following = Promise.all(
        Array.from({ length: followers }, async (_, n) => {
          for await (const batch of engine.follow(`s${n}`, { signal: stop.signal }))
            seen.push(...seqs(batch))
        }),
      )
      // Two calls for each follower: the head of its stream, and the segments.
      await asks(0, 2 * followers, before)
      await asks(500, 2 * lookedAtOnce)
      assert.is(server.asked(), streams)
      await other.append(`s${followers - 1}`, events(1))
      await other.append('s0', events(1))
      for (let n = 0; n < 2; n++) {
        await clock.advance(500)
        await quiet()
      }
      await reach('both events', () => seen.length === 2)
      assert.equal(seen, [1, 1])
      /**
       * Waits until a change stream is tried again, which takes at most a minute of this clock.
       * Calls under way take no time of it.
       */
      const askedAgain = async () => {
        for (let askedBefore = streamsAsked(), tries = 0; streamsAsked() === askedBefore; tries++) {
          assert.ok(tries < 100, 'in vain: whether there is a change stream by now')
          await clock.advance(1000)
          await new Promise(resolve => setTimeout(resolve, 10))
        }
      }
      await askedAgain()
      assert.equal([server.asked(), said], [streams + 1, ['mongodb.no_replica_set']])
      server.join()
      await askedAgain()
      await quiet()
      await other.append('s7', events(1))
      await reach('the event by a change stream', () => seen.length === 3)
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
}

test.run()
