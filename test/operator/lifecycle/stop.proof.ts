// A server that is told to stop while it works.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { endProcesses, signUp, startProcess } from '../../support/process.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-stop-'))

for (const signal of ['SIGTERM', 'SIGINT'] as const)
  test(`${signal} ends streams after a whole frame, gives runs back, exits with 0`, async () => {
    const env = { DATA_DIR: join(home, signal), MODELS_URL: 'scripted:?tokens=150&interval_ms=20' }
    const server = await startProcess(env)
    const { token } = await signUp(server.base, env, 100)
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const runs = await Promise.all(
      Array.from(
        { length: 10 },
        async () =>
          (
            (await (
              await fetch(`${server.base}/chat`, {
                method: 'POST',
                headers,
                body: '{"message":"long"}',
              })
            ).json()) as { run_id: string }
          ).run_id,
      ),
    )
    const streams = await Promise.all(
      runs.map(id => fetch(`${server.base}/runs/${id}/events`, { headers })),
    )
    const texts = Promise.all(streams.map(response => response.text()))
    await new Promise(resolve => setTimeout(resolve, 300))
    server.child.kill(signal)
    await server.kill(signal)
    assert.equal([server.child.exitCode, server.child.signalCode, server.errors()], [0, null, ''])
    // A stream that is broken off would have rejected: `terminated`.
    for (const text of await texts) assert.match(text, /event: token[\s\S]*\n\n$/)
    assert.not.ok(
      (await texts).some(text => text.includes('event: done')),
      'a run is not waited for',
    )
    const next = await startProcess(env)
    const balanceOf = async () =>
      (await (await fetch(`${next.base}/balance`, { headers })).json()) as {
        balance: number
        held: number
      }
    for (const id of runs)
      assert.match(
        await (await fetch(`${next.base}/runs/${id}/events`, { headers })).text(),
        /event: done\n.*\n\n$/,
      )
    assert.equal(await balanceOf(), { balance: 90, held: 0, available: 90 })
    await next.kill('SIGTERM')
  })

/** A plugin with a call and a job that never end, whatever they are told. */
const hanging = (undo: string) => `import { definePlugin } from 'agent-platform/plugin'
import { JobQueue } from 'agent-platform/ports/queue'
export default definePlugin({
  name: 'hanging', version: '1.0.0', kernel: '^1.0.0', uses: { queue: JobQueue },
  contract: {
    'GET /hang': { summary: 'Never answers', auth: 'public', reply: { type: 'null' } },
    'POST /hang': { summary: 'Puts in a job', auth: 'public', reply: { type: 'string' } },
  },
  routes: {
    'GET /hang': () => new Promise(() => undefined),
    'POST /hang': ({ queue }) => queue.enqueue('hanging.job', null),
  },
  jobs: { 'hanging.job': { run: () => new Promise(() => undefined) } },
  start: ({ defer }) => defer(() => ${undo}),
})
`
async function startHanging(name: string, undo = 'undefined') {
  const plugins = join(home, name, 'plugins')
  mkdirSync(join(plugins, 'hanging'), { recursive: true })
  writeFileSync(join(plugins, 'hanging', 'plugin.js'), hanging(undo))
  const server = await startProcess({
    DATA_DIR: join(home, name, 'data'),
    PLUGINS_DIR: plugins,
    DRAIN_MS: '700',
    LOG_LEVEL: 'warn',
  })
  return {
    server,
    call: (method = 'GET') =>
      fetch(`${server.base}/hang`, { method }).then(
        response => response.text(),
        () => undefined,
      ),
    lines: () =>
      server
        .errors()
        .split('\n')
        .filter(Boolean)
        .map(line => JSON.parse(line) as Record<string, unknown>),
    async stop() {
      const since = performance.now()
      await server.kill('SIGTERM')
      return performance.now() - since
    },
  }
}

test('a call that hangs is waited for DRAIN_MS, and named when it is left', async () => {
  const { server, call, lines, stop } = await startHanging('call')
  void call()
  void call()
  await new Promise(resolve => setTimeout(resolve, 200))
  const took = await stop()
  assert.ok(took >= 690, `${took} ms`)
  assert.is(server.child.exitCode, 0)
  assert.not.ok(
    lines().some(({ event }) => event === 'stop.left'),
    'its own time ended it, not the limit of the whole stop',
  )
  const { plugin, calls, generation } = lines().find(({ event }) => event === 'plugin.left')!
  assert.equal([plugin, calls, typeof generation], ['hanging', 2, 'number'])
})

test('what cannot be undone is named, and the process ends all the same', async () => {
  const { server, lines, stop } = await startHanging('undo', 'new Promise(() => undefined)')
  await stop()
  assert.is(server.child.exitCode, 1)
  const { what, ms } = lines().find(({ event }) => event === 'stop.left')!
  assert.equal([what, ms], ['plugin:hanging', 4700])
})

test('a job that hangs does not keep the process', async () => {
  const { server, call, lines, stop } = await startHanging('job')
  await call('POST')
  await new Promise(resolve => setTimeout(resolve, 300))
  await stop()
  assert.is(server.child.exitCode, 1)
  assert.equal(
    lines().map(({ event }) => event),
    ['plugin.left', 'stop.left'],
  )
})

test.after(async () => {
  await endProcesses()
  rmSync(home, { recursive: true, force: true })
})
test.run()
