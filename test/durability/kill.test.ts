// 60 runs; the server is killed with SIGKILL in the middle of streaming and started again, five times over.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { commandLine, freePort, signUp, startProcess, type Process, type Signed } from '../kit/process.ts'

const runsCount = 60, rounds = 5, tokens = 90
const dataDir = mkdtempSync(join(tmpdir(), 'agent-platform-kill-'))
const env = { DATA_DIR: dataDir, PORT: String(await freePort()), MODELS_URL: `scripted:?tokens=${tokens}&interval_ms=30`, LIMITS_RUNS_PER_SECOND: '1000', LIMITS_RUNS_BURST: '1000' }
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
type Follower = { runId: string; key: string; frames: Map<number, string>; ended: boolean; repeated: string[] }

let server: Process = await startProcess(env)
const { base } = server, who: Signed = await signUp(base, env, 1000)
const headers = { authorization: `Bearer ${who.token}` }
const start = async (key: string) => {
  const response = await fetch(`${base}/chat`, { method: 'POST', headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify({ message: `run ${key}`, idempotency_key: key }) })
  assert.is(response.status, 200)
  return (await response.json()) as { run_id: string; resumed: boolean }
}
const balance = async () => (await (await fetch(`${base}/balance`, { headers })).json()) as { balance: number; held: number }
const framesOf = (text: string) => text.split('\n\n').filter(frame => frame.startsWith('id: ')).map(frame => [Number(/^id: (\d+)/.exec(frame)![1]), frame] as const)

/** Reads to the end of the run, coming back with its cursor whenever the connection breaks. */
async function follow(follower: Follower): Promise<void> {
  while (!follower.ended) {
    const last = Math.max(0, ...follower.frames.keys())
    try {
      const response = await fetch(`${base}/runs/${follower.runId}/events`, { headers: { ...headers, ...(last ? { 'last-event-id': String(last) } : {}) } })
      assert.is(response.status, 200)
      let rest = ''
      for await (const part of response.body!.pipeThrough(new TextDecoderStream())) {
        const whole = (rest + part).lastIndexOf('\n\n') + 2
        for (const [id, frame] of framesOf((rest + part).slice(0, whole))) {
          if (id <= Math.max(0, ...follower.frames.keys())) follower.repeated.push(frame)
          follower.frames.set(id, frame)
          if (/^event: (?:done|error)$/m.test(frame)) follower.ended = true
        }
        rest = (rest + part).slice(whole)
      }
    } catch (error) {
      if ((error as { code?: string }).code === 'ERR_ASSERTION') throw error
      await pause(50)
    }
  }
}

/** The answer that a client shows who folds by step, attempt and keep. */
function textOf(frames: readonly string[]): string {
  let text = '', attempt = 1
  for (const frame of frames) {
    const data = JSON.parse(/^data: (.*)$/m.exec(frame)![1]!) as { text: string; attempt: number; keep: number }
    if (frame.includes('event: superseded')) [text, attempt] = [text.slice(0, data.keep), attempt + 1]
    if (frame.includes('event: token')) {
      assert.is(data.attempt, attempt)
      text += data.text
    }
  }
  return text
}

test('no event that a client saw is lost or changed, every run ends, each is charged once', async () => {
  const followers: Follower[] = await Promise.all(Array.from({ length: runsCount }, async (_, i) => ({ key: `key-${i}`, runId: (await start(`key-${i}`)).run_id, frames: new Map(), ended: false, repeated: [] })))
  const reading = Promise.all(followers.map(follow))
  let interrupted = 0
  for (let round = 0; round < rounds; round++) {
    await pause(250 + round * 70)
    interrupted += followers.filter(({ ended, frames }) => !ended && frames.size > 0).length
    await server.kill('SIGKILL')
    server = await startProcess(env)
  }
  await reading
  assert.ok(interrupted >= runsCount * 3, `runs were streaming when the server died (${interrupted})`)

  const whole = tokens, expected = Array.from({ length: whole }, (_, i) => `token${String(i).padStart(2, '0')} `).join('')
  let superseded = 0
  for (const { runId, frames, repeated } of followers) {
    const log = framesOf(await (await fetch(`${base}/runs/${runId}/events`, { headers })).text())
    assert.equal(log, [...frames], 'what was seen is what the log holds, in order, whole')
    assert.equal(repeated, [])
    const terminals = log.filter(([, frame]) => /^event: (?:done|error)$/m.test(frame))
    assert.is(terminals.length, 1)
    assert.is(terminals[0]![0], log.at(-1)![0])
    assert.match(terminals[0]![1], /event: done/)
    assert.is(log.filter(([, frame]) => frame.includes('event: usage')).length, 1)
    assert.is(textOf(log.map(([, frame]) => frame)), expected)
    superseded += log.filter(([, frame]) => frame.includes('event: superseded')).length
  }
  assert.ok(superseded > 0, 'some answers were begun again')
  assert.equal(await balance(), { balance: 1000 - runsCount, held: 0, available: 1000 - runsCount }, 'one credit a run, nothing still held')
  for (const { key, runId } of followers) {
    const again = await start(key)
    assert.equal([again.run_id, again.resumed], [runId, true])
  }
  assert.is((await balance()).balance, 1000 - runsCount, 'repeating the keys cost nothing')
  const verified = await commandLine<{ ok: boolean; runs: number; told: unknown[] }>(['verify'], env)
  assert.equal([verified.told, verified.ok, verified.runs], [[], true, runsCount])
})

test('SIGTERM stops within seconds and the next start goes on', async () => {
  const { run_id: runId } = await start('over-a-stop')
  await pause(150)
  const stoppedAt = performance.now()
  await server.kill('SIGTERM')
  assert.ok(performance.now() - stoppedAt < 8000)
  server = await startProcess(env)
  const log = framesOf(await (await fetch(`${base}/runs/${runId}/events`, { headers })).text())
  assert.match(log.at(-1)![1], /event: done/)
})

test.after(async () => {
  await server.kill('SIGKILL')
  rmSync(dataDir, { recursive: true, force: true })
})
test.run()
