// Plugins are reloaded, loaded, unloaded and rolled back a hundred times under traffic: nobody
// notices, and nothing stays behind.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  readEvents,
  startServer,
  type SseEvent,
  type TestServer,
} from '../conformance/plugin/server.ts'

const rounds = 100
const runsCount = 20
const kibPerReloadMax = 64
setFlagsFromString('--expose-gc')
const gc = runInNewContext('gc') as () => void
const home = mkdtempSync(join(tmpdir(), 'agent-platform-hot-'))
const folder = join(home, 'guest')
const free = { LIMITS_RUNS_PER_SECOND: '10000', LIMITS_RUNS_BURST: '10000' }
const turn = () => new Promise<void>(resolve => setTimeout(resolve, 1))

/**
 * A guest with a route and a timer that is undone; `broken` fails while it is built, after its
 * timer was set.
 */
function writeGuest(words: string, broken = false): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(
    join(folder, 'plugin.js'),
    `
import { definePlugin } from 'agent-platform/plugin'
export default definePlugin({
  name: 'guest', version: '1.0.0', kernel: '^1.0.0',
  contract: { 'GET /guest': { summary: 'Words', auth: 'public', reply: { type: 'object' } } },
  routes: { 'GET /guest': () => ({ words: ${JSON.stringify(words)} }) },
  start: ({ defer }) => {
    const timer = setInterval(() => undefined, 1000)
    defer(() => clearInterval(timer))
    ${broken ? "throw new Error('no such thing')" : ''}
  },
})`,
  )
}
const textOf = (events: readonly SseEvent[]) => {
  let text = ''
  for (const { event, data } of events) {
    if (event === 'token') text += data['text'] as string
    if (event === 'superseded') text = text.slice(0, data['keep'] as number)
  }
  return text
}
const open = new Set<TestServer>()
const served = async (env: Record<string, string> = {}) => {
  const server = await startServer({ env: { ...free, ...env } })
  open.add(server)
  return server
}
/** The client's own connections, which it keeps for a while; and what is over at the next turn. */
const passing = new Set(['TCPSocketWrap', 'Immediate'])
const resources = () => {
  const counts: Record<string, number> = {}
  for (const name of process.getActiveResourcesInfo())
    if (!passing.has(name)) counts[name] = (counts[name] ?? 0) + 1
  return counts
}
/** Old generations are undone a moment after the swap. */
async function settled(expected: Record<string, number>): Promise<void> {
  for (
    let tries = 0;
    tries < 200 &&
    JSON.stringify(Object.entries(resources()).sort()) !==
      JSON.stringify(Object.entries(expected).sort());
    tries++
  )
    await new Promise(resolve => setTimeout(resolve, 20))
}
async function heapKiB(): Promise<number> {
  for (let i = 0; i < 5; i++) {
    gc()
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  return process.memoryUsage().heapUsed / 1024
}

test(`${rounds} changes under traffic drop no request, lose no event, fail no run`, async () => {
  const server = await served({
    MODELS_URL: 'scripted:?tokens=300&interval_ms=20',
    DRAIN_MS: '2000',
    RUNS_SWEEP_MS: '100',
    RUNS_TAKES_MAX: '1000',
  })
  const { pluginRegistry, call } = server
  const { token } = await server.account(1000)
  writeGuest('first')
  await pluginRegistry.load(folder)
  const { upload_id: upload } = (
    await call('POST', '/uploads', {
      token,
      body: { filename: 'a.txt', mime: 'text/plain', content_base64: btoa('kept') },
    })
  ).body as { upload_id: string }

  let going = true
  let requests = 0
  const bad: string[] = []
  const hammer = async (
    path: string,
    right: (body: Record<string, unknown>) => boolean,
    auth?: string,
  ) => {
    while (going) {
      const { status, text, body } = await call('GET', path, { token: auth })
      if (status !== 200 || !right(body as Record<string, unknown>))
        bad.push(`${path}: ${status} ${text}`)
      requests++
      await turn()
    }
  }
  const traffic = [
    hammer(`/uploads/${upload}`, body => body['filename'] === 'a.txt', token),
    hammer('/sessions', body => Array.isArray(body['items']), token),
    hammer('/balance', body => typeof body['balance'] === 'number', token),
  ]
  const start = async (message: string) =>
    ((await call('POST', '/chat', { token, body: { message } })).body as { run_id: string }).run_id
  const runs = await Promise.all(Array.from({ length: runsCount }, (_, i) => start(`run ${i}`)))
  const reading = Promise.all(runs.map(async id => readEvents(await server.stream(token, id))))
  const waiting = await start('[[tool=ask_user {"question":"Anybody?","options":["yes","no"]}]]')
  const asked = readEvents(
    await server.stream(token, waiting),
    ({ event }) => event === 'user_choice' || event === 'done' || event === 'error',
  )
  await asked

  const change = async (round: number) => {
    switch (round % 5) {
      case 0:
      case 1:
        return void (await pluginRegistry.reload('files'))
      case 2:
        writeGuest(`words of ${round}`)
        await pluginRegistry.reload('guest')
        assert.is(
          ((await call('GET', '/guest')).body as { words: string }).words,
          `words of ${round}`,
        )
        return
      case 3:
        writeGuest('never served', true)
        await pluginRegistry.reload('guest').then(
          () => assert.unreachable('it was loaded'),
          (error: Error) =>
            assert.match(
              error.message,
              /guest 1\.0\.0 cannot be built: no such thing|goes on serving/,
            ),
        )
        assert.is((await call('GET', '/guest')).status, 200)
        return
      default:
        await pluginRegistry.unload('guest')
        assert.is((await call('GET', '/guest')).status, 404)
        writeGuest('back')
        await pluginRegistry.load(folder)
    }
  }
  for (let round = 0; round < 10; round++) await change(round)
  for (let round = 0; round < rounds; round++) await change(round)
  const logs = await reading
  going = false
  await Promise.all(traffic)

  assert.equal(bad, [])
  const expected = Array.from(
    { length: 300 },
    (_, i) => `token${String(i).padStart(2, '0')} `,
  ).join('')
  for (const events of logs) {
    assert.is(events.at(-1)!.event, 'done')
    assert.is(events.at(-1)!.data['status'], 'done')
    assert.is(textOf(events), expected)
    assert.ok(events.every(({ id }, i) => i === 0 || id > events[i - 1]!.id))
  }
  const verified = (await server.kernel.commands().get('verify')!.run({})) as { told: unknown[] }
  assert.equal(verified.told, [])
  const handOvers = logs.map(events => events.filter(({ event }) => event === 'superseded').length)
  process.stdout.write(
    `${requests} requests and ${runsCount} streams during ${rounds} changes; at most ` +
      `${Math.max(...handOvers)} hand-overs seen by a reader\n`,
  )
  await server.stop()
  open.delete(server)
})

test('no timer, handle or listener is left, and little memory', async () => {
  const before = resources()
  const listeners = process.eventNames().map(name => [name, process.listenerCount(name)])
  const server = await served()
  writeGuest('here')
  await server.pluginRegistry.load(folder)
  await (await fetch(`${server.base}/guest`)).text()
  const once = resources()
  const reload = async (name: string, times: number) => {
    for (let round = 0; round < times; round++) await server.pluginRegistry.reload(name)
    await settled(once)
    assert.equal(resources(), once)
    return heapKiB()
  }
  for (const name of ['guest', 'files', 'runs']) {
    const warm = await reload(name, 10)
    const each = ((await reload(name, 40)) - warm) / 40
    process.stdout.write(`${name}: ${each.toFixed(1)} KiB of heap a reload\n`)
    assert.ok(each < kibPerReloadMax, `${name}: ${each.toFixed(1)} KiB of heap a reload`)
  }
  await server.stop()
  open.delete(server)
  await settled(before)
  assert.equal(resources(), before)
  assert.equal(
    process.eventNames().map(name => [name, process.listenerCount(name)]),
    listeners,
  )
})

test.after(async () => {
  for (const server of open) await server.stop()
  rmSync(home, { recursive: true, force: true })
})
test.run()
