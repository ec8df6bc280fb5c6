// What nobody catches ends a process in order: told as a defect, runs handed over, an exit code
// that a supervisor sees.
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { endProcesses, signUp, startProcess, type Process } from '../../support/process.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-defect-'))
const plugins = join(home, 'plugins')
mkdirSync(join(plugins, 'careless'), { recursive: true })
writeFileSync(
  join(plugins, 'careless', 'plugin.js'),
  `import { definePlugin } from 'agent-platform/plugin'
const later = act => ({ summary: 'Fails later', auth: 'public', reply: { type: 'null' } })
export default definePlugin({
  name: 'careless', version: '1.0.0', kernel: '^1.0.0',
  contract: { 'POST /throw': later(), 'POST /reject': later() },
  routes: {
    'POST /throw': () => {
      setImmediate(() => { throw new Error('nobody catches sk_live_abcdefgh') })
      return null
    },
    'POST /reject': () => {
      void Promise.reject(new Error('nobody awaits this'))
      return null
    },
  },
})
`,
)
type Line = Record<string, unknown> & { error?: { message: string } }
const linesOf = (server: Process) =>
  server
    .errors()
    .split('\n')
    .filter(Boolean)
    .map(line => JSON.parse(line) as Line)

for (const [route, kind, message] of [
  ['throw', 'uncaughtException', 'nobody catches sk_live_…'],
  ['reject', 'unhandledRejection', 'nobody awaits this'],
] as const)
  test(`${kind}: its plugin is named, runs are handed over, and the code is 70`, async () => {
    const env = {
      DATA_DIR: join(home, route),
      PLUGINS_DIR: plugins,
      MODELS_URL: 'scripted:?tokens=100&interval_ms=20',
    }
    const server = await startProcess({ ...env, LOG_LEVEL: 'info' })
    const { token } = await signUp(server.base, env, 100)
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const { run_id: run } = (await (
      await fetch(`${server.base}/chat`, { method: 'POST', headers, body: '{"message":"long"}' })
    ).json()) as { run_id: string }
    const ended = once(server.child, 'exit')
    await fetch(`${server.base}/${route}`, { method: 'POST' }).then(
      response => response.text(),
      () => undefined,
    )
    assert.equal(await ended, [70, null])
    const lines = linesOf(server)
    const defect = lines.find(({ event }) => event === 'process.defect')
    assert.equal(
      [defect?.['level'], defect?.['kind'], defect?.['plugin'], defect?.error?.message],
      ['error', kind, 'careless', message],
    )
    assert.ok(
      lines.some(({ event, signal }) => event === 'stopping' && signal === 'defect'),
      'it is the ordinary stop',
    )
    assert.not.match(server.errors(), /sk_live_a/)
    if (route === 'reject') return
    const next = await startProcess(env)
    assert.match(
      await (await fetch(`${next.base}/runs/${run}/events`, { headers })).text(),
      /event: done\n.*\n\n$/,
    )
    await next.kill('SIGTERM')
  })

test.after(async () => {
  await endProcesses()
  rmSync(home, { recursive: true, force: true })
})
test.run()
