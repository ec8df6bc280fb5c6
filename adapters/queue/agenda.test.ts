// The kit against the server that MONGODB_URL names, and a server that is away.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { hasCode } from '#contracts/faults.ts'
import { opening } from '../../test/conformance/opening.ts'
import { real } from '../../test/conformance/queue/common.ts'
import { queueKit } from '../../test/conformance/queue.ts'
import { ends, onAgenda } from '../../test/support/databases/agenda.ts'
import { freshDatabase, mongoUrl } from '../../test/support/databases/mongodb.ts'
import { startProxy } from '../../test/support/databases/proxy.ts'
import { manualClock } from '../clock/manual.ts'
import { systemClock } from '../clock/system.ts'
import adapter, { agendaQueue } from './agenda.ts'

const clock = systemClock()
const on = onAgenda(test)

if (mongoUrl === undefined) test.skip('agenda: the kit (MONGODB_URL is not set)', () => undefined)
else {
  const why = 'Agenda goes by real time; asked in agenda/'
  const unasked: string[] = []
  queueKit(test, 'agenda', {
    lacks: { time: why, crash: why },
    unasked: check => void unasked.push(check),
    place: async () => {
      const { connect, clean } = freshDatabase()
      const stands = manualClock()
      const open = async () =>
        agendaQueue({ connection: await connect(), clock: stands, log: () => undefined })
      return {
        clock: stands,
        open,
        another: async () => ({ queue: await open(), die: () => assert.unreachable() }),
        clean,
      }
    },
  })
  test('agenda: what the kit leaves out is twelve checks about time', () =>
    assert.is(unasked.length, 12, unasked.join('\n')))

  on(
    'while the server is away a sentence says so; when it is back, work goes on without ' +
      'another start',
    async ({ open, url }) => {
      const proxy = await startProxy(() => [Number(url.port)], url.hostname)
      const through = new URL(url)
      const seen: unknown[] = []
      const direct = await open()
      through.port = String(proxy.port)
      for (const [name, value] of Object.entries({
        directConnection: 'true',
        serverSelectionTimeoutMS: '300',
      }))
        through.searchParams.set(name, value)
      const queue = await adapter.open(opening(`agenda:${through.href}`, { clock }))
      await using ending = new AsyncDisposableStack()
      ending.defer(() => proxy.close())
      ending.defer(() => queue.close())
      queue.define('a', async ({ data }) => void seen.push(data))
      await ends(direct, await direct.enqueue('a', 1), 'done')
      proxy.refuse()
      for (const call of [
        () => queue.enqueue('a', 2),
        () => queue.ping(),
        () => queue.state('0'.repeat(24)),
      ])
        assert.ok(hasCode(await call().catch((error: unknown) => error), 'UNAVAILABLE'))
      const meanwhile = await direct.enqueue('a', 3)
      await real(1500)
      assert.is(await direct.state(meanwhile), 'waiting')
      proxy.heal()
      await ends(direct, meanwhile, 'done')
      await ends(direct, await queue.enqueue('a', 4), 'done')
      assert.equal(seen, [1, 3, 4])
    },
  )
}

test('agenda: where no server answers, and where its URL is none, a sentence says so', async () => {
  const failure = (url: string) =>
    adapter.open(opening(url, { clock })).then(
      () => undefined,
      (error: Error) => error,
    )
  const away = await failure(
    'agenda:mongodb://somebody:hidden-word@127.0.0.1:1/x?serverSelectionTimeoutMS=200',
  )
  assert.ok(hasCode(away, 'UNAVAILABLE'))
  assert.is(away.message, 'The database is not available: no server that takes writes answers.')
  for (const url of ['agenda:', 'agenda://host/db', 'agenda:sqlite:x'])
    assert.match(
      (await failure(url))!.message,
      /^QUEUE_URL: is written as agenda:mongodb:\/\/host\/database/,
    )
})

test.run()
