// 60 runs; the server is killed with SIGKILL in mid-stream and started again, five times over.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { endProcesses, freePort, signUp, startProcess, type Process } from '../support/process.ts'
import { sameRuns, sawItWhole, verifiesClean } from './checks.ts'
import { createClient, pause, textOf } from './client.ts'

const runsCount = 60
const rounds = 5
const tokens = 90
const dataDir = mkdtempSync(join(tmpdir(), 'agent-platform-kill-'))
const env = {
  DATA_DIR: dataDir,
  PORT: String(await freePort()),
  MODELS_URL: `scripted:?tokens=${tokens}&interval_ms=30`,
  LIMITS_RUNS_PER_SECOND: '1000',
  LIMITS_RUNS_BURST: '1000',
  RUNS_DEATHS_MAX: '100',
}

let server: Process = await startProcess(env)
const client = createClient(server.base, await signUp(server.base, env, 1000))

test('no event a client saw is lost or changed; every run ends and is charged once', async () => {
  const following = await Promise.all(
    Array.from({ length: runsCount }, async (_, i) =>
      client.follow(await client.start(`key-${i}`), `key-${i}`),
    ),
  )
  const followers = following.map(({ follower }) => follower)
  const reading = Promise.all(following.map(({ over }) => over))
  let interrupted = 0
  for (let round = 0; round < rounds; round++) {
    await pause(250 + round * 70)
    interrupted += followers.filter(({ ended, frames }) => !ended && frames.size > 0).length
    await server.kill('SIGKILL')
    server = await startProcess(env)
  }
  await reading
  assert.ok(
    interrupted >= runsCount * 3,
    `runs were streaming when the server died (${interrupted})`,
  )

  const whole = tokens
  const expected = Array.from(
    { length: whole },
    (_, i) => `token${String(i).padStart(2, '0')} `,
  ).join('')
  let superseded = 0
  for (const follower of followers) {
    const seen = await sawItWhole(client, follower)
    assert.is(seen.at(-1)!.type, 'done')
    assert.is(textOf(follower.frames.values()), expected)
    superseded += seen.filter(({ type }) => type === 'superseded').length
  }
  assert.ok(superseded > 0, 'some answers were begun again')
  assert.equal(
    await client.balance(),
    { balance: 1000 - runsCount, held: 0, available: 1000 - runsCount },
    'one credit a run, nothing still held',
  )
  await sameRuns(client, followers)
  await verifiesClean(env, runsCount)
})

test('SIGTERM stops within seconds and the next start goes on', async () => {
  const { run_id: runId } = await client.start('over-a-stop')
  await pause(150)
  const stoppedAt = performance.now()
  await server.kill('SIGTERM')
  assert.ok(performance.now() - stoppedAt < 8000)
  server = await startProcess(env)
  const log = await client.log(runId)
  assert.match(log.at(-1)![1], /event: done/)
})

test.after(async () => {
  client.close()
  await endProcesses()
  rmSync(dataDir, { recursive: true, force: true })
})
test.run()
