// A plugin that throws, loops, leaks or leaves harms nobody: its thread is ended and started again,
// everything else is served all the while.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { readEvents, startServer, type TestServer } from '../conformance/plugin/server.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-threads-'))
const folder = join(home, 'wild')
const isolated = { memory_mb: 32, stall_ms: 10_000 }
const ways = {
  fine: '() => ({ fine: true })',
  throws: '() => { throw new Error("on purpose") }',
  refuses: '() => { throw fault("NOT_FOUND", { what: "thing" }) }',
  rejects:
    '() => { Promise.reject(new Error("nobody waits for this")); return new Promise(() => {}) }',
  late:
    '() => { setTimeout(() => { throw new Error("much later") }, 1); return new Promise(() ' +
    '=> {}) }',
  loops: '() => { for (;;); }',
  leaks:
    '() => { const kept = []; for (;;) kept.push({ text: String(Math.random()).repeat(10) }) }',
  buffers:
    '() => new Promise(() => { globalThis.kept = []; setInterval(() => ' +
    'globalThis.kept.push(Buffer.alloc(4 << 20, 1)), 5) })',
  leaves: '() => process.exit(0)',
  waits:
    '({ signal }) => new Promise((_, reject) => { globalThis.waiting = 1; ' +
    'signal.addEventListener("abort", () => { globalThis.waiting = 2; ' +
    'reject(signal.reason) }) })',
  waited: '() => ({ waiting: globalThis.waiting ?? 0 })',
}
function write(version = '1.0.0', more = ''): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }')
  writeFileSync(
    join(folder, 'plugin.js'),
    `
import { definePlugin, into } from 'agent-platform/plugin'
import { fault } from 'agent-platform/faults'
import { Tools } from 'agent-platform/plugins/runs'
const ways = { ${Object.entries(ways)
      .map(([name, body]) => `${name}: ${body}`)
      .join(',\n')} }
export default definePlugin({
  name: 'wild', version: '${version}', kernel: '^1.0.0',
  contract: Object.fromEntries(Object.keys(ways).map(name => ['GET /wild/' + name, {
    summary: name, auth: 'public', reply: { type: 'object' }, faults: ['NOT_FOUND'],
  }])),
  routes: Object.fromEntries(Object.entries(ways).map(([name, run]) => ['GET /wild/' + name, run])),
  contributes: [into(Tools, () => ({
    name: 'wild', description: 'Loops.', parameters: { type: 'object' }, run: () => ways.loops(),
  }))],
  ${more}
})`,
  )
}
const wild = async (server: TestServer, way: string) => await server.call('GET', `/wild/${way}`)
const again = async (server: TestServer) => {
  for (let tries = 0; (await wild(server, 'fine')).status !== 200; tries++) {
    assert.ok(tries < 500, 'it never came back')
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}
/** Something else is asked all the while, and a run streams: each must be answered. */
async function besides(server: TestServer, act: () => Promise<void>): Promise<void> {
  const { token } = await server.account()
  let going = true
  let asked = 0
  const traffic = (async () => {
    while (going) {
      const { body } = await server.call('POST', '/chat', { token, body: { message: 'hello' } })
      const events = await readEvents(
        await server.stream(token, (body as { run_id: string }).run_id),
      )
      assert.is(events.at(-1)!.event, 'done')
      asked++
    }
  })()
  await Promise.all([
    traffic,
    act().finally(() => {
      going = false
    }),
  ])
  assert.ok(asked > 0)
}

let sharedServer: TestServer
test.before(async () => {
  write()
  sharedServer = await startServer({
    env: { LIMITS_RUNS_PER_SECOND: '10000', LIMITS_RUNS_BURST: '10000' },
  })
  await sharedServer.pluginRegistry.load(folder, { isolated })
})
test('plugins load --isolated: no line of it runs in the process, even at first', async () => {
  const server = await startServer()
  const { load, check } = {
    load: server.kernel.commands().get('plugins load')!,
    check: server.kernel.commands().get('plugins check')!,
  }
  const apart = { isolated: true, memory_mb: 32, stall_ms: 10_000 }
  const seen = globalThis as { ranHere?: number }
  const place = join(home, 'shy')
  const writeShy = (text: string) => {
    mkdirSync(place, { recursive: true })
    writeFileSync(
      join(place, 'plugin.mjs'),
      `import { isMainThread } from 'node:worker_threads'\nif (isMainThread) ` +
        `globalThis.ranHere = 1\nimport { definePlugin } from ` +
        `'agent-platform/plugin'\n${text}\nexport default definePlugin({ name: 'shy', ` +
        `version: '1.0.0', kernel: '^1.0.0' })`,
    )
    return { path: join(place, 'plugin.mjs'), ...apart }
  }
  assert.match(
    await load.run(writeShy('process.exit(9)')).then(
      () => 'it serves',
      (error: Error) => error.message,
    ),
    /its thread has ended/,
  )
  assert.equal(await check.run({ path: writeShy('').path, isolated: true }), {
    name: 'shy',
    version: '1.0.0',
    replaces: null,
  })
  assert.equal(((await load.run(writeShy(''))) as { isolated: unknown }).isolated, {
    memory_mb: 32,
    stall_ms: 10_000,
  })
  assert.is(seen.ranHere, undefined)
  await server.stop()
})

test.after(async () => {
  await sharedServer.stop()
  rmSync(home, { recursive: true, force: true })
})

test('what it throws is answered as in the process: a fault as itself, else 500', async () => {
  assert.is((await wild(sharedServer, 'throws')).status, 500)
  assert.ok(
    sharedServer.logged.some(line => line.includes('on purpose')),
    'the error is in the log',
  )
  assert.is((await wild(sharedServer, 'refuses')).status, 404)
  assert.is((await wild(sharedServer, 'fine')).status, 200)
})

const ends = {
  rejects: 'it threw where nobody could catch it: nobody waits for this',
  late: 'it threw where nobody could catch it: much later',
  loops: 'it did not answer for 500 ms',
  leaks: 'it used more than 32 MiB',
  buffers: 'its buffers take more than 32 MiB',
  leaves: 'its thread has ended',
}
for (const [way, why] of Object.entries(ends)) {
  test(`${way}: the caller gets 503 with the reason, others nothing, and it recovers`, async () => {
    // Short only where the loop is meant: a thread that collects garbage without end is silent too.
    await sharedServer.pluginRegistry.isolate(
      'wild',
      way === 'loops' ? { ...isolated, stall_ms: 500 } : isolated,
    )
    await besides(sharedServer, async () => {
      const { status, body } = await wild(sharedServer, way)
      assert.equal(
        [status, (body as { detail: string }).detail],
        [503, `The plugin wild is not available: ${why}.`],
      )
      await again(sharedServer)
    })
    assert.ok(
      sharedServer.logged.some(line => line.includes('wild.thread.ended') && line.includes(why)),
      'the log says so',
    )
  })
}

test('a tool that loops fails its call; the run goes on to its end', async () => {
  await sharedServer.pluginRegistry.isolate('wild', { ...isolated, stall_ms: 500 })
  const { token } = await sharedServer.account()
  const { body } = await sharedServer.call('POST', '/chat', {
    token,
    body: { message: '[[tool=wild {}]]' },
  })
  const events = await readEvents(
    await sharedServer.stream(token, (body as { run_id: string }).run_id),
  )
  const result = events.find(({ event }) => event === 'tool_result')!.data as { content: string }
  assert.match(result.content, /did not answer|not available/)
  assert.is(events.at(-1)!.event, 'done')
  await again(sharedServer)
})

test('one that ends again and again starts ever later; it answers 503 meanwhile', async () => {
  await sharedServer.pluginRegistry.reload('wild')
  await wild(sharedServer, 'leaves')
  await again(sharedServer)
  await wild(sharedServer, 'leaves')
  const { status, headers } = await wild(sharedServer, 'fine')
  assert.is(status, 503)
  assert.ok(Number(headers.get('retry-after')) >= 1)
  await again(sharedServer)
})

test('a caller who goes away is seen over there', async () => {
  await sharedServer.pluginRegistry.reload('wild')
  const leaving = new AbortController()
  const asked = fetch(`${sharedServer.base}/wild/waits`, { signal: leaving.signal }).catch(
    () => undefined,
  )
  const waiting = async (state: number) => {
    for (
      let tries = 0;
      ((await wild(sharedServer, 'waited')).body as { waiting: number }).waiting !== state;
      tries++
    ) {
      assert.ok(tries < 500, `it never came to ${state}`)
      await new Promise(resolve => setTimeout(resolve, 10))
    }
  }
  await waiting(1)
  leaving.abort()
  await asked
  await waiting(2)
})

test('changed files are not started by accident: it stays out until it is reloaded', async () => {
  await sharedServer.pluginRegistry.reload('wild')
  const ended = () => sharedServer.logged.filter(line => line.includes('wild.thread.ended')).length
  const before = ended()
  write('2.0.0')
  await wild(sharedServer, 'leaves')
  const said = async () =>
    ((await wild(sharedServer, 'fine')).body as { detail?: string }).detail ?? ''
  for (
    let tries = 0;
    !(await said()).includes('its files have changed since; reload it');
    tries++
  ) {
    assert.ok(tries < 500, await said())
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  assert.is(
    ended(),
    before + 1,
    'only the one that served has ended, and one start follows another',
  )
  assert.is((await sharedServer.pluginRegistry.reload('wild')).version, '2.0.0')
  assert.is((await wild(sharedServer, 'fine')).status, 200)
})

test('a plugin that cannot start in a thread leaves the old one serving and says why', async () => {
  const refused = (act: Promise<unknown>) =>
    act.then(
      () => '',
      (error: Error) => error.message,
    )
  for (const [more, why] of [
    ['nonsense', /cannot be imported/],
    ['start: () => { throw new Error("no luck") },', /no luck/],
    [
      'services: { one: () => 1 }, provides: { one: { id: "service:one", kind: "service", ' +
        'version: "1.0.0" } },',
      /cannot run in a thread: it provides the service one/,
    ],
  ] as const) {
    write('3.0.0', more)
    const sentence = await refused(sharedServer.pluginRegistry.reload('wild'))
    assert.match(sentence, why)
    assert.match(sentence, /wild 2\.0\.0 \(generation \d+\) goes on serving/)
    assert.is((await wild(sharedServer, 'fine')).status, 200)
  }
})

test.run()
