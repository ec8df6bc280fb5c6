// What a log line holds: the same names everywhere, and a line for each request where an operator
// wants it.
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createLog } from '../../../kernel/telemetry/log.ts'
import { definePlugin, fault } from '../../../kernel/index.ts'
import { endServers, startServer } from '../../conformance/plugin/server.ts'

type Line = { level: string; time: string; event: string } & Record<string, unknown>
const linesOf = (logged: readonly string[]) => logged.map(line => JSON.parse(line) as Line)

test('a line begins with its level, its time by the clock port and its event', () => {
  const lines: string[] = []
  const log = createLog({ level: 'info', now: () => 1_000, write: line => lines.push(line) })
  log('debug', 'not.told', { a: 1 })
  log('warn', 'run.left', { run: 'r', organisation: 'o' })
  assert.equal(lines, [
    '{"level":"warn","time":"1970-01-01T00:00:01.000Z","run":"r","organisation":"o",' +
      '"event":"run.left"}\n',
  ])
})

test('an error is told as message, stack and code, whether it was thrown or worded', () => {
  const lines: string[] = []
  const log = createLog({ level: 'info', now: () => 0, write: line => lines.push(line) })
  log('error', 'a', {
    error: fault(
      'UNAVAILABLE',
      { what: 'The database', why: 'it is gone' },
      { cause: new Error('the socket closed') },
    ),
  })
  log('error', 'b', { error: 'worded' })
  const [thrown, worded] = linesOf(lines).map(
    ({ error }) => error as { message: string; stack?: string; code?: string },
  )
  assert.match(thrown!.message, /The database/)
  assert.is(thrown!.code, 'UNAVAILABLE')
  assert.match(thrown!.stack!, /logs\.test\.ts[\s\S]*caused by Error: the socket closed/)
  assert.equal(worded, { message: 'worded' })
})

const talkative = definePlugin({
  name: 'talkative',
  version: '1.0.0',
  kernel: '^1.0.0',
  start: ({ log }) => log('info', 'begun', { plugin: 'somebody else' }),
})

test('what a plugin says carries its name and its generation, whatever it claims', async () => {
  const server = await startServer({ env: { LOG_LEVEL: 'info' }, plugins: [talkative] })
  const { plugin, generation } = linesOf(server.logged).find(
    ({ event }) => event === 'talkative.begun',
  )!
  assert.equal([plugin, generation], ['talkative', 1])
  await server.stop()
})

test('each request is a line at debug, and at info where LOG_REQUESTS says so', async () => {
  for (const [env, level] of [
    [{ LOG_LEVEL: 'debug' }, 'debug'],
    [{ LOG_LEVEL: 'info', LOG_REQUESTS: 'true' }, 'info'],
    [{ LOG_LEVEL: 'info' }, undefined],
  ] as const) {
    const server = await startServer({ env })
    const { token } = await server.account()
    await server.call('GET', '/sessions?limit=5', { token, headers: { 'x-request-id': 'mine' } })
    await server.call('GET', '/nowhere/else', { headers: { 'x-request-id': 'lost' } })
    await server.stop()
    const lines = linesOf(server.logged).filter(({ event }) => event === 'request.ended')
    const mine = lines.find(line => line['request_id'] === 'mine')
    const lost = lines.find(line => line['request_id'] === 'lost')
    if (level === undefined) assert.equal(lines, [])
    else {
      const { time: _, ms, generation, ...rest } = mine!
      assert.equal(rest, {
        level,
        event: 'request.ended',
        method: 'GET',
        route: '/api/v1/sessions',
        status: 200,
        request_id: 'mine',
        plugin: 'runs',
      })
      assert.ok(typeof ms === 'number' && typeof generation === 'number')
      assert.equal([lost!['route'], lost!['status'], 'plugin' in lost!], ['unknown', 404, false])
      assert.not.match(
        server.logged.join(''),
        /nowhere/,
        'paths may hold what nobody else shall read',
      )
    }
  }
})

test('a request that failed unforeseen is told by its id', async () => {
  const server = await startServer()
  const { token } = await server.account()
  const storage = server.engine<{ find: unknown }>('storage')
  const { find } = storage
  storage.find = () => Promise.reject(new TypeError('of nothing'))
  const { status } = await server.call('GET', '/sessions', {
    token,
    headers: { 'x-request-id': 'broken' },
  })
  storage.find = find
  const line = linesOf(server.logged).find(({ event }) => event === 'request.failed')!
  assert.equal(
    [status, line['request_id'], line['route'], (line['error'] as Error).message],
    [500, 'broken', '/api/v1/sessions', 'of nothing'],
  )
  await server.stop()
})

test.after(endServers)
test.run()
