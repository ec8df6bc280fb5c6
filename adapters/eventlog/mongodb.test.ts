// The kit against the server that MONGODB_URL names, and what two processes on one server see of
// each other.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import { events, followedAcross, seqs } from '../../test/conformance/eventlog/common.ts'
import { eventlogKit } from '../../test/conformance/eventlog.ts'
import { freshDatabase, mongoUrl } from '../../test/support/databases/mongodb.ts'
import { systemClock } from '../clock/system.ts'
import { mongoEventlog } from './mongodb.ts'

const engineOf = async ({ connect }: ReturnType<typeof freshDatabase>) =>
  mongoEventlog({ connection: await connect(), clock: systemClock(), log: () => undefined })

if (mongoUrl === undefined) test.skip('mongodb: the kit (MONGODB_URL is not set)', () => undefined)
else {
  eventlogKit(test, 'mongodb', {
    survives: true,
    place: async () => {
      const database = freshDatabase()
      return {
        clean: database.clean,
        async open() {
          const log = await engineOf(database)
          return { log, close: () => log.close() }
        },
      }
    },
  })

  const two = (
    title: string,
    run: (
      one: Awaited<ReturnType<typeof engineOf>>,
      other: Awaited<ReturnType<typeof engineOf>>,
    ) => Promise<void>,
  ) =>
    test(`mongodb: ${title}`, async () => {
      const database = freshDatabase()
      const engines = [await engineOf(database), await engineOf(database)] as const
      try {
        await run(...engines)
      } finally {
        for (const engine of engines) await engine.close()
        await database.clean()
      }
    })
  two(
    'what one process appends, another follows: each event once, in order, whenever the ' +
      'follower began',
    followedAcross,
  )
  two(
    'of two that append at one place exactly one is refused, however old its knowledge is',
    async (one, other) => {
      await one.append('a', events(2))
      assert.is(await other.append('a', events(1), { expect: 2 }), 3)
      const refused = await one.append('a', events(1), { expect: 2 }).then(
        () => undefined,
        (error: unknown) => error,
      )
      assert.ok(hasCode(refused, 'STREAM_MOVED') && refused.values['head'] === 3)
      await other.append('b', events(1))
      await one.append('b', events(1), { expect: 1 })
      await other.append('b', events(3))
      // What `one` knows of the stream is old. Both appends are valid by the time that they are
      // written.
      assert.equal(
        await Promise.all([one.append('b', events(1)), one.append('b', events(1), { expect: 6 })]),
        [6, 7],
      )
      const many = await Promise.allSettled(
        Array.from({ length: 20 }, (_, n) =>
          [one, other][n % 2]!.append('a', events(1 + (n % 3)), { expect: 3 }),
        ),
      )
      assert.is(many.filter(({ status }) => status === 'fulfilled').length, 1)
      await Promise.all(
        Array.from({ length: 40 }, (_, n) => [one, other][n % 2]!.append('a', events(2))),
      )
      const { last } = await one.bounds('a')
      assert.equal(
        seqs(await other.read('a')),
        Array.from({ length: last }, (_, n) => n + 1),
      )
    },
  )
  two(
    'thousands that begin to follow at once do not keep an append waiting',
    async (one, other) => {
      const many = 2000
      const stop = new AbortController()
      await one.append('a', events(1))
      let began = 0
      const following = Promise.all(
        Array.from({ length: many }, async () => {
          for await (const batch of other.follow('a', { signal: stop.signal }))
            began += batch.length
        }),
      )
      await other.append('b', events(1))
      const before = began
      while (began < many) await new Promise(resolve => setTimeout(resolve, 5))
      stop.abort()
      await following
      assert.ok(before < many / 2, `${before} had read when it was appended`)
    },
  )
  two(
    'a rewrite and a trim by one process are what the other reads; nothing is read twice ' +
      'or left out meanwhile',
    async (one, other) => {
      for (let n = 0; n < 60; n++) await one.append('a', events(5))
      let going = true
      const reading = (async () => {
        while (going) {
          const found = seqs(await other.read('a', { after: 100 }))
          assert.equal(
            [
              found[0]! > 100,
              found.at(-1),
              found.every((seq, at) => at === 0 || seq > found[at - 1]!),
            ],
            [true, 300, true],
          )
        }
      })()
      await one.rewrite('a', { from: 1, through: 52 }, [{ seq: 52, type: 'whole', data: null }])
      await one.rewrite('a', { from: 103, through: 290 }, [{ seq: 290, type: 'whole', data: null }])
      await one.trim('a', 60)
      going = false
      await reading
      assert.equal(seqs(await other.read('a')), [
        ...Array.from({ length: 42 }, (_, n) => 61 + n),
        290,
        ...Array.from({ length: 10 }, (_, n) => 291 + n),
      ])
      assert.equal(await other.bounds('a'), { first: 61, last: 300 })
      assert.is(await other.append('a', events(1), { expect: 300 }), 301)
    },
  )
}

test.run()
