// Under a shim that delays fdatasync, no answer and no event leaves before the sync that makes it
// durable has returned.
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { signUp, startProcess } from '../support/process.ts'

const delayMs = 400
/**
 * What one sync let go may arrive this long after the next one began, on a busy machine. Whatever
 * leaves too early comes at any moment of a sync, so the rest of it is enough to see.
 */
const slackMs = 250
const dataDir = mkdtempSync(join(tmpdir(), 'agent-platform-sync-'))
const hasCompiler = process.platform === 'linux' && spawnSync('cc', ['--version']).status === 0
const guarded = hasCompiler ? test : test.skip

guarded('nothing leaves while a sync is under way', async () => {
  const shim = join(dataDir, 'slow-sync.so')
  const log = join(dataDir, 'syncs')
  execFileSync('cc', [
    '-shared',
    '-fPIC',
    '-O1',
    '-o',
    shim,
    join(import.meta.dirname, 'slow-sync.c'),
    '-ldl',
  ])
  writeFileSync(log, '')
  const env = {
    DATA_DIR: join(dataDir, 'data'),
    MODELS_URL: 'scripted:?tokens=60&interval_ms=40',
    LD_PRELOAD: shim,
    SYNC_LOG: log,
    DELAY_MS: String(delayMs),
  }
  const server = await startProcess(env)
  try {
    const { token } = await signUp(server.base, { ...env, LD_PRELOAD: '' }, 100)
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const arrivals: { what: string; at: number }[] = []
    const askedAt = Date.now()
    const response = await fetch(`${server.base}/chat`, {
      method: 'POST',
      headers,
      body: '{"message":"slowly"}',
    })
    const { run_id: runId } = (await response.json()) as { run_id: string }
    const answeredAt = Date.now()
    arrivals.push({ what: 'the answer', at: answeredAt })
    const stream = await fetch(`${server.base}/runs/${runId}/events`, { headers })
    for await (const part of stream.body!.pipeThrough(new TextDecoderStream())) {
      const at = Date.now()
      for (const [what] of part.matchAll(/^id: \d+$/gm)) arrivals.push({ what, at })
    }
    const syncs = readFileSync(log, 'utf8')
      .trim()
      .split('\n')
      .map(line => line.split(' ').map(Number) as [number, number])
    assert.ok(arrivals.length > 60, `events arrived (${arrivals.length})`)
    assert.ok(
      syncs.some(([begin, end]) => begin >= askedAt && end <= answeredAt),
      'a whole sync lies between the request and its answer',
    )
    assert.ok(
      syncs.filter(([begin, end]) => begin >= answeredAt && end - begin >= delayMs).length >= 3,
      'syncs were slow while events came',
    )
    const early = arrivals.filter(({ at }) =>
      syncs.some(([begin, end]) => at > begin + slackMs && at < end - 10),
    )
    assert.equal(early, [])
  } finally {
    await server.kill('SIGKILL')
  }
})

test.after(() => rmSync(dataDir, { recursive: true, force: true }))
test.run()
