// `start --check`: what a start would meet, told before it.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { once } from 'node:events'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { freePort, runMain } from '../../support/process.ts'

type Report = {
  readonly ok: boolean
  readonly checks: readonly {
    readonly what: string
    readonly setting: string
    readonly adapter: string
    readonly result: string
    readonly detail: string
  }[]
}
const dir = mkdtempSync(join(tmpdir(), 'agent-platform-check-'))
const asked = async (env: Record<string, string> = {}) => {
  const { code, out, err } = await runMain(['start', '--check', '--json'], {
    DATA_DIR: join(dir, 'data'),
    ...env,
  })
  assert.is(err, '')
  return { code, ...(JSON.parse(out) as Report) }
}
const wrongIn = ({ checks }: Report) =>
  checks
    .filter(({ result }) => result === 'wrong')
    .map(({ what, setting, detail }) => [what, setting, detail])

test('an installation that can start: every port with its adapter, and exit code 0', async () => {
  const { code, ok, checks } = await asked()
  assert.equal([code, ok, checks.filter(({ result }) => result !== 'ok')], [0, true, []])
  assert.equal(
    checks.map(({ what, adapter }) => `${what} ${adapter}`.trim()),
    [
      'clock system:',
      'traces off:',
      'storage sqlite:',
      'eventlog sqlite:',
      'billing ledger:',
      'queue storage:',
      'blobs file:',
      'search sqlite:',
      'mail outbox:',
      'models offline:',
      'limits memory:',
      'http restify:',
      'address',
    ],
  )
})

test('everything that is wrong is told at once, by its setting', async () => {
  const taken = createServer().listen(0, '127.0.0.1')
  await once(taken, 'listening')
  const { port } = taken.address() as { port: number }
  const report = await asked({
    PORT: String(port),
    MAIL_URL: `smtp://127.0.0.1:${await freePort()}`,
    MODELS_URL: 'nobody:',
    BLOBS_URL: 'memory:?size=1',
    RUNS_LEASE_MS: 'soon',
  })
  taken.close()
  assert.equal([report.code, report.ok], [1, false])
  const wrong = wrongIn(report)
  assert.equal(
    wrong.map(([what, setting]) => [what, setting]),
    [
      ['blobs', 'BLOBS_URL'],
      ['mail', 'MAIL_URL'],
      ['models', 'MODELS_URL'],
      ['address', 'PORT'],
      ['plugin runs', ''],
    ],
  )
  assert.match(wrong[2]![2]!, /there is no adapter "nobody:"/)
  assert.match(wrong[4]![2]!, /RUNS_LEASE_MS/)
})

test('two absent stores are both reported, though only a timer is waited for', async () => {
  const away = `127.0.0.1:${await freePort()}`
  const report = await asked({
    STORAGE_URL: `mongodb://${away}/db?serverSelectionTimeoutMS=300`,
    SEARCH_URL: `opensearch://${away}/x`,
  })
  assert.equal([report.code, report.ok], [1, false])
  assert.equal(
    wrongIn(report)
      .map(([what]) => what)
      .filter(what => what === 'storage' || what === 'search'),
    ['storage', 'search'],
  )
})

test('what rides on a port that is away is told, too, and no secret with it', async () => {
  const absent = `mongodb://ann:hunter2@127.0.0.1:${await freePort()}/db`
  const report = await asked({ STORAGE_URL: `${absent}?serverSelectionTimeoutMS=300` })
  assert.equal(
    wrongIn(report).map(([what]) => what),
    ['storage', 'eventlog', 'billing', 'queue', 'blobs', 'search', 'limits'],
  )
  assert.not.match(JSON.stringify(report), /hunter2/)
})

test('settings and secrets are read from files', async () => {
  const file = join(dir, 'storage-url')
  writeFileSync(file, 'nowhere:\n')
  const [first] = wrongIn(await asked({ STORAGE_URL_FILE: file }))
  assert.match(first![2]!, /there is no adapter "nowhere:"/)
  assert.match(
    wrongIn(await asked({ AUTH_SECRET_FILE: join(dir, 'none') }))[0]![2]!,
    /AUTH_SECRET_FILE.*cannot be read \(ENOENT\)/,
  )
})

test.after(() => rmSync(dir, { recursive: true, force: true }))
test.run()
