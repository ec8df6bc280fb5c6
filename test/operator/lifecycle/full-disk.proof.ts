// A full disk: refused with 503, nothing corrupt, nothing that was acknowledged lost, and
// everything goes on when there is room.
import { DatabaseSync } from 'node:sqlite'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { endProcesses, freePort, signUp, startProcess } from '../../support/process.ts'

const dataDir = mkdtempSync(join(tmpdir(), 'agent-platform-full-'))
const credits = 10_000
const common = {
  DATA_DIR: dataDir,
  PORT: String(await freePort()),
  MODELS_URL: 'scripted:?tokens=40&interval_ms=2',
  RUNS_DEATHS_MAX: '100',
  LIMITS_RUNS_PER_SECOND: '10000',
  LIMITS_RUNS_BURST: '10000',
}
const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
type Answer = { readonly status: number; readonly body: Readonly<Record<string, string>> }

/** What the file itself says, with nobody around who could make it good. */
function inspect(orgId: string): { integrity: unknown; balance: number; held: number } {
  const database = new DatabaseSync(join(dataDir, 'platform.db'))
  const integrity = Object.values(database.prepare('PRAGMA integrity_check').get()!)[0]
  const sums = database
    .prepare(
      `SELECT sum(doc ->> 'amount') AS balance, sum(doc ->> 'held') AS held FROM c_ledger ` +
        `WHERE doc ->> 'orgId' = ?`,
    )
    .get(orgId) as { balance: number; held: number }
  database.close()
  return { integrity, ...sums }
}

test('a full disk answers 503 and corrupts nothing', async () => {
  let server = await startProcess({ ...common, STORAGE_URL: 'sqlite:?bytes_max=1500000' })
  const { token, orgId } = await signUp(server.base, common, credits)
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const ask = async (method: string, path: string, body: object): Promise<Answer> => {
    const response = await fetch(server.base + path, {
      method,
      headers,
      body: JSON.stringify(body),
    })
    return { status: response.status, body: (await response.json()) as Answer['body'] }
  }
  const acknowledged: string[] = []
  const refused: Answer[] = []
  for (let i = 0; i < 120 && refused.length < 20; i++) {
    const answers = await Promise.all(
      Array.from({ length: 10 }, () => ask('POST', '/chat', { message: 'x'.repeat(2000) })),
    )
    for (const answer of answers) {
      if (answer.status === 200) acknowledged.push(answer.body['run_id']!)
      else refused.push(answer)
    }
  }
  assert.ok(
    refused.length >= 20 && acknowledged.length > 20,
    `${acknowledged.length} runs fitted, ${refused.length} did not`,
  )
  // Whoever writes is told alike.
  const others = await Promise.all(
    Array.from({ length: 30 }, (_, i) => [
      ask('POST', '/auth/register', {
        email: `somebody-${i}@example.org`,
        password: 'correct horse',
      }),
      ask('POST', '/api-keys', { name: 'k'.repeat(100) }),
      ask('PATCH', '/auth/me', { name: `${i}`.repeat(60) }),
      ask('POST', '/tasks', { message: 'x'.repeat(20_000), idempotency_key: `task-${i}` }),
    ]).flat(),
  )
  const full = others.filter(
    ({ status, body }) =>
      status >= 400 && body['code'] !== 'KEYS_EXHAUSTED' && body['code'] !== 'RATE_LIMITED',
  )
  refused.push(...full)
  assert.ok(full.length > 50, 'there was no room for them either')
  for (const [i, { status, body }] of others.entries())
    if (i % 4 === 3 && status === 200) acknowledged.push(body['run_id']!)
  assert.equal(
    [...new Set(refused.map(({ status, body }) => `${status} ${body['code']} ${body['detail']}`))],
    [
      '503 STORAGE_FULL The storage is full. Do not rely on this request: repeat it when ' +
        'there is room, with the same idempotency key where it has one.',
    ],
  )
  assert.is((await fetch(`${server.base}/healthz`)).status, 200, 'the process lives')
  assert.is((await fetch(`${server.base}/balance`, { headers })).status, 200, 'reading goes on')
  await server.kill('SIGKILL')
  assert.is(inspect(orgId).integrity, 'ok')

  server = await startProcess(common)
  const streams = await Promise.all(
    acknowledged.map(async id =>
      (await fetch(`${server.base}/runs/${id}/events`, { headers })).text(),
    ),
  )
  assert.ok(
    streams.every(text => /event: done/.test(text)),
    'every run that was acknowledged is there, and ends',
  )
  const charged = streams.reduce((sum, text) => sum + Number(/"credits":(\d+)/.exec(text)?.[1]), 0)
  const balanceOf = async () =>
    (await (await fetch(`${server.base}/balance`, { headers })).json()) as {
      balance: number
      held: number
    }
  // A run whose answer was lost may have been admitted all the same; it ends and is charged like
  // any other.
  for (let tries = 0; tries < 100 && (await balanceOf()).held > 0; tries++) await pause(100)
  const { balance, held } = await balanceOf()
  assert.is(held, 0)
  assert.ok(
    balance <= credits - charged && balance >= credits - charged - 10 * refused.length,
    `${credits - balance} credits for ${acknowledged.length} runs that cost ${charged}`,
  )
  await server.kill('SIGTERM')
  assert.equal(
    inspect(orgId),
    { integrity: 'ok', balance, held },
    'the ledger adds up to the balance',
  )
})

test.after(async () => {
  await endProcesses()
  rmSync(dataDir, { recursive: true, force: true })
})
test.run()
