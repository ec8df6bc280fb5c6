// A server that is told to stop while it works.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { endProcesses, signUp, startProcess } from '../kit/process.ts'

const home = mkdtempSync(join(tmpdir(), 'agent-platform-stop-'))

for (const signal of ['SIGTERM', 'SIGINT'] as const) test(`${signal} ends open streams after a whole frame, gives runs back, and exits with 0`, async () => {
  const env = { DATA_DIR: join(home, signal), MODELS_URL: 'scripted:?tokens=60&interval_ms=20' }, server = await startProcess(env)
  const { token } = await signUp(server.base, env, 100), headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const runs = await Promise.all(Array.from({ length: 10 }, async () => ((await (await fetch(`${server.base}/chat`, { method: 'POST', headers, body: '{"message":"long"}' })).json()) as { run_id: string }).run_id))
  const streams = await Promise.all(runs.map(id => fetch(`${server.base}/runs/${id}/events`, { headers })))
  const texts = Promise.all(streams.map(response => response.text()))
  await new Promise(resolve => setTimeout(resolve, 300))
  const stoppedAt = performance.now()
  server.child.kill(signal)
  await server.kill(signal)
  assert.ok(performance.now() - stoppedAt < 1900)
  assert.equal([server.child.exitCode, server.child.signalCode, server.errors()], [0, null, ''])
  // A stream that is broken off would have rejected: `terminated`.
  for (const text of await texts) assert.match(text, /event: token[\s\S]*\n\n$/)
  const next = await startProcess(env)
  const balanceOf = async () => (await (await fetch(`${next.base}/balance`, { headers })).json()) as { balance: number; held: number }
  for (const id of runs) assert.match(await (await fetch(`${next.base}/runs/${id}/events`, { headers })).text(), /event: done\n.*\n\n$/)
  assert.equal(await balanceOf(), { balance: 90, held: 0, available: 90 })
  await next.kill('SIGTERM')
})

test.after(async () => {
  await endProcesses()
  rmSync(home, { recursive: true, force: true })
})
test.run()
